// SPDX-License-Identifier: BSD-3-Clause
//
// Barrier, broadcast and the reductions: from MPI's arguments to the algorithms of coll/.
#include "coll/allreduce.hpp"
#include "coll/barrier.hpp"
#include "coll/bcast.hpp"
#include "coll/reduce.hpp"
#include "coll/reduce_scatter.hpp"
#include "coll/scan.hpp"
#include "mpi/bodies.hpp"
#include "mpi/engine/buffer.hpp"
#include "mpi/coll/collective.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/coll/op.hpp"

namespace gantry::mpi {
namespace {

Executor& executor_of(const coll::Team& team) {
    return team.messenger->executor();
}

// The two sides of a reduction; in place, the receive buffer is both.
struct Sides {
    p2p::Buffer source, sink;
};
Sides sides(const void* sendbuf, void* recvbuf, MPI_Count count, const Datatype& datatype) {
    const p2p::Buffer sink = buffer(recvbuf, count, datatype);
    return {sendbuf == MPI_IN_PLACE ? sink : buffer(sendbuf, count, datatype), sink};
}

Result<Plan> plan_barrier() {
    return Plan([](coll::Team team) { return coll::barrier(executor_of(team), team); });
}

Result<Plan> plan_bcast(void* address, MPI_Count count, const Datatype& datatype, int root) {
    const p2p::Buffer data = buffer(address, count, datatype);
    return Plan(
        [data, root](coll::Team team) { return coll::bcast(executor_of(team), team, data, root); });
}

Result<Plan> plan_allreduce(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype,
                            const Op& op) {
    Result<coll::Reducer> how = reducer(op, datatype);
    if (!how.ok()) return std::move(how).status();
    return Plan([both = sides(sendbuf, recvbuf, count, datatype), reduce = *how](coll::Team team) {
        return coll::allreduce(executor_of(team), team, both.source, both.sink, reduce);
    });
}

Result<Plan> plan_reduce(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype,
                         const Op& op, int root) {
    Result<coll::Reducer> how = reducer(op, datatype);
    if (!how.ok()) return std::move(how).status();
    return Plan(
        [both = sides(sendbuf, recvbuf, count, datatype), reduce = *how, root](coll::Team team) {
            return coll::reduce(executor_of(team), team, both.source, both.sink, reduce, root);
        });
}

Result<Plan> plan_scan(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype,
                       const Op& op, bool exclusive) {
    Result<coll::Reducer> how = reducer(op, datatype);
    if (!how.ok()) return std::move(how).status();
    return Plan([both = sides(sendbuf, recvbuf, count, datatype), reduce = *how,
                 exclusive](coll::Team team) {
        return coll::scan(executor_of(team), team, both.source, both.sink, reduce, exclusive);
    });
}

// `counts` null: equal shares of `count`.
Result<Plan> plan_reduce_scatter(const void* sendbuf, void* recvbuf, MPI_Count count,
                                 const MPI_Count* counts, Datatype& datatype, const Op& op,
                                 const Comm& comm) {
    Result<coll::Reducer> how = reducer(op, datatype);
    if (!how.ok()) return std::move(how).status();
    coll::Blocks shares;
    shares.layout = &datatype.layout;
    MPI_Count total = 0;
    for (int rank = 0; rank < comm.size(); ++rank) {
        shares.counts.push_back(counts != nullptr ? counts[rank] : count);
        shares.displacements.push_back(total);
        total += shares.counts.back();
    }
    const p2p::Buffer sink =
        buffer(recvbuf, shares.counts[static_cast<std::size_t>(comm.rank())], datatype);
    // In place, the whole vector stands in the receive buffer.
    const p2p::Buffer source = buffer(sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, total, datatype);
    return Plan([source, sink, shares = std::move(shares), reduce = *how](coll::Team team) {
        return coll::reduce_scatter(executor_of(team), team, source, shares, sink, reduce);
    });
}

}  // namespace

Pending barrier(Comm& comm) {
    return blocking(comm, plan_barrier());
}
Status ibarrier(Comm& comm, MPI_Request* request) {
    return nonblocking(comm, plan_barrier(), {}, request);
}
Status barrier_init(Comm& comm, Info*, MPI_Request* request) {
    return persistent(comm, plan_barrier(), {}, request);
}

Pending bcast(void* buf, MPI_Count count, Datatype& datatype, int root, Comm& comm) {
    return blocking(comm, plan_bcast(buf, count, datatype, root));
}
Status ibcast(void* buf, MPI_Count count, Datatype& datatype, int root, Comm& comm,
              MPI_Request* request) {
    return nonblocking(comm, plan_bcast(buf, count, datatype, root), {&datatype}, request);
}
Status bcast_init(void* buf, MPI_Count count, Datatype& datatype, int root, Comm& comm, Info*,
                  MPI_Request* request) {
    return persistent(comm, plan_bcast(buf, count, datatype, root), {&datatype}, request);
}

Pending allreduce(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op,
                  Comm& comm) {
    return blocking(comm, plan_allreduce(sendbuf, recvbuf, count, datatype, op));
}
Status iallreduce(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op,
                  Comm& comm, MPI_Request* request) {
    return nonblocking(comm, plan_allreduce(sendbuf, recvbuf, count, datatype, op), {&datatype},
                       request);
}
Status allreduce_init(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype,
                      Op& op, Comm& comm, Info*, MPI_Request* request) {
    return persistent(comm, plan_allreduce(sendbuf, recvbuf, count, datatype, op), {&datatype},
                      request);
}

Pending reduce(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op,
               int root, Comm& comm) {
    return blocking(comm, plan_reduce(sendbuf, recvbuf, count, datatype, op, root));
}
Status ireduce(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op,
               int root, Comm& comm, MPI_Request* request) {
    return nonblocking(comm, plan_reduce(sendbuf, recvbuf, count, datatype, op, root), {&datatype},
                       request);
}
Status reduce_init(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op,
                   int root, Comm& comm, Info*, MPI_Request* request) {
    return persistent(comm, plan_reduce(sendbuf, recvbuf, count, datatype, op, root), {&datatype},
                      request);
}

Pending scan(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op,
             Comm& comm) {
    return blocking(comm, plan_scan(sendbuf, recvbuf, count, datatype, op, false));
}
Status iscan(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op,
             Comm& comm, MPI_Request* request) {
    return nonblocking(comm, plan_scan(sendbuf, recvbuf, count, datatype, op, false), {&datatype},
                       request);
}
Status scan_init(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op,
                 Comm& comm, Info*, MPI_Request* request) {
    return persistent(comm, plan_scan(sendbuf, recvbuf, count, datatype, op, false), {&datatype},
                      request);
}

Pending exscan(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op,
               Comm& comm) {
    return blocking(comm, plan_scan(sendbuf, recvbuf, count, datatype, op, true));
}
Status iexscan(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op,
               Comm& comm, MPI_Request* request) {
    return nonblocking(comm, plan_scan(sendbuf, recvbuf, count, datatype, op, true), {&datatype},
                       request);
}
Status exscan_init(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op,
                   Comm& comm, Info*, MPI_Request* request) {
    return persistent(comm, plan_scan(sendbuf, recvbuf, count, datatype, op, true), {&datatype},
                      request);
}

Pending reduce_scatter_block(const void* sendbuf, void* recvbuf, MPI_Count recvcount,
                             Datatype& datatype, Op& op, Comm& comm) {
    return blocking(comm,
                    plan_reduce_scatter(sendbuf, recvbuf, recvcount, nullptr, datatype, op, comm));
}
Status ireduce_scatter_block(const void* sendbuf, void* recvbuf, MPI_Count recvcount,
                             Datatype& datatype, Op& op, Comm& comm, MPI_Request* request) {
    return nonblocking(
        comm, plan_reduce_scatter(sendbuf, recvbuf, recvcount, nullptr, datatype, op, comm),
        {&datatype}, request);
}
Status reduce_scatter_block_init(const void* sendbuf, void* recvbuf, MPI_Count recvcount,
                                 Datatype& datatype, Op& op, Comm& comm, Info*,
                                 MPI_Request* request) {
    return persistent(comm,
                      plan_reduce_scatter(sendbuf, recvbuf, recvcount, nullptr, datatype, op, comm),
                      {&datatype}, request);
}

Pending reduce_scatter(const void* sendbuf, void* recvbuf, const MPI_Count* recvcounts,
                       Datatype& datatype, Op& op, Comm& comm) {
    return blocking(comm, plan_reduce_scatter(sendbuf, recvbuf, 0, recvcounts, datatype, op, comm));
}
Status ireduce_scatter(const void* sendbuf, void* recvbuf, const MPI_Count* recvcounts,
                       Datatype& datatype, Op& op, Comm& comm, MPI_Request* request) {
    return nonblocking(comm,
                       plan_reduce_scatter(sendbuf, recvbuf, 0, recvcounts, datatype, op, comm),
                       {&datatype}, request);
}
Status reduce_scatter_init(const void* sendbuf, void* recvbuf, const MPI_Count* recvcounts,
                           Datatype& datatype, Op& op, Comm& comm, Info*, MPI_Request* request) {
    return persistent(comm,
                      plan_reduce_scatter(sendbuf, recvbuf, 0, recvcounts, datatype, op, comm),
                      {&datatype}, request);
}

}  // namespace gantry::mpi
