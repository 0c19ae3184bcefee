// SPDX-License-Identifier: BSD-3-Clause
//
// Barrier, broadcast and reductions: from MPI's arguments to the algorithms of coll/, once for the blocking and the nonblocking call.
#include "coll/allreduce.hpp"
#include "coll/barrier.hpp"
#include "coll/bcast.hpp"
#include "coll/reduce.hpp"
#include "coll/reduce_scatter.hpp"
#include "coll/scan.hpp"
#include "mpi/bodies.hpp"
#include "mpi/buffer.hpp"
#include "mpi/collective.hpp"
#include "mpi/engine.hpp"
#include "mpi/op.hpp"

namespace gantry::mpi {
namespace {

using Started = Result<Task<Status>>;

Started start_allreduce(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, Comm& comm) {
    Result<coll::Reducer> how = reducer(op, datatype);
    if (!how.ok()) return std::move(how).status();
    const p2p::Buffer sink = buffer(recvbuf, count, datatype);
    const p2p::Buffer source = sendbuf == MPI_IN_PLACE ? sink : buffer(sendbuf, count, datatype);
    return coll::allreduce(comm.engine->executor(), comm.team(), source, sink, *how);
}

Started start_reduce(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, int root, Comm& comm) {
    Result<coll::Reducer> how = reducer(op, datatype);
    if (!how.ok()) return std::move(how).status();
    const p2p::Buffer sink = buffer(recvbuf, count, datatype);
    const p2p::Buffer source = sendbuf == MPI_IN_PLACE ? sink : buffer(sendbuf, count, datatype);
    return coll::reduce(comm.engine->executor(), comm.team(), source, sink, *how, root);
}

Started start_scan(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, Comm& comm, bool exclusive) {
    Result<coll::Reducer> how = reducer(op, datatype);
    if (!how.ok()) return std::move(how).status();
    const p2p::Buffer sink = buffer(recvbuf, count, datatype);
    const p2p::Buffer source = sendbuf == MPI_IN_PLACE ? sink : buffer(sendbuf, count, datatype);
    return coll::scan(comm.engine->executor(), comm.team(), source, sink, *how, exclusive);
}

// `counts` null: equal shares of `count`.
Started start_reduce_scatter(const void* sendbuf, void* recvbuf, MPI_Count count, const MPI_Count* counts, Datatype& datatype,
                             Op& op, Comm& comm) {
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
    const p2p::Buffer sink = buffer(recvbuf, shares.counts[static_cast<std::size_t>(comm.rank())], datatype);
    // In place, the whole vector stands in the receive buffer.
    const p2p::Buffer source = buffer(sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, total, datatype);
    return coll::reduce_scatter(comm.engine->executor(), comm.team(), source, std::move(shares), sink, *how);
}

}  // namespace

Pending blocking(Comm& comm, Result<Task<Status>> task) {
    if (!task.ok()) return std::move(task).status();
    return Pending(*comm.engine, std::move(*task));
}

Status nonblocking(Comm& comm, Result<Task<Status>> task, MPI_Request* request, Datatype* first, Datatype* second) {
    if (!task.ok()) return std::move(task).status();
    Result<p2p::Request*> started = comm.engine->requests().spawn(std::move(*task));
    if (!started.ok()) return std::move(started).status();
    *request = comm.engine->requests().hand_out(*started, comm, first, second);
    return success();
}

Pending barrier(Comm& comm) { return blocking(comm, coll::barrier(comm.engine->executor(), comm.team())); }
Status ibarrier(Comm& comm, MPI_Request* request) {
    return nonblocking(comm, coll::barrier(comm.engine->executor(), comm.team()), request);
}

Pending bcast(void* buf, MPI_Count count, Datatype& datatype, int root, Comm& comm) {
    return blocking(comm, coll::bcast(comm.engine->executor(), comm.team(), buffer(buf, count, datatype), root));
}
Status ibcast(void* buf, MPI_Count count, Datatype& datatype, int root, Comm& comm, MPI_Request* request) {
    return nonblocking(comm, coll::bcast(comm.engine->executor(), comm.team(), buffer(buf, count, datatype), root), request,
                       &datatype);
}

Pending allreduce(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, Comm& comm) {
    return blocking(comm, start_allreduce(sendbuf, recvbuf, count, datatype, op, comm));
}
Status iallreduce(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, Comm& comm,
                  MPI_Request* request) {
    return nonblocking(comm, start_allreduce(sendbuf, recvbuf, count, datatype, op, comm), request, &datatype);
}

Pending reduce(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, int root, Comm& comm) {
    return blocking(comm, start_reduce(sendbuf, recvbuf, count, datatype, op, root, comm));
}
Status ireduce(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, int root, Comm& comm,
               MPI_Request* request) {
    return nonblocking(comm, start_reduce(sendbuf, recvbuf, count, datatype, op, root, comm), request, &datatype);
}

Pending scan(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, Comm& comm) {
    return blocking(comm, start_scan(sendbuf, recvbuf, count, datatype, op, comm, false));
}
Status iscan(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, Comm& comm, MPI_Request* request) {
    return nonblocking(comm, start_scan(sendbuf, recvbuf, count, datatype, op, comm, false), request, &datatype);
}
Pending exscan(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, Comm& comm) {
    return blocking(comm, start_scan(sendbuf, recvbuf, count, datatype, op, comm, true));
}
Status iexscan(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype, Op& op, Comm& comm, MPI_Request* request) {
    return nonblocking(comm, start_scan(sendbuf, recvbuf, count, datatype, op, comm, true), request, &datatype);
}

Pending reduce_scatter_block(const void* sendbuf, void* recvbuf, MPI_Count recvcount, Datatype& datatype, Op& op, Comm& comm) {
    return blocking(comm, start_reduce_scatter(sendbuf, recvbuf, recvcount, nullptr, datatype, op, comm));
}
Status ireduce_scatter_block(const void* sendbuf, void* recvbuf, MPI_Count recvcount, Datatype& datatype, Op& op, Comm& comm,
                             MPI_Request* request) {
    return nonblocking(comm, start_reduce_scatter(sendbuf, recvbuf, recvcount, nullptr, datatype, op, comm), request, &datatype);
}
Pending reduce_scatter(const void* sendbuf, void* recvbuf, const MPI_Count* recvcounts, Datatype& datatype, Op& op, Comm& comm) {
    return blocking(comm, start_reduce_scatter(sendbuf, recvbuf, 0, recvcounts, datatype, op, comm));
}
Status ireduce_scatter(const void* sendbuf, void* recvbuf, const MPI_Count* recvcounts, Datatype& datatype, Op& op, Comm& comm,
                       MPI_Request* request) {
    return nonblocking(comm, start_reduce_scatter(sendbuf, recvbuf, 0, recvcounts, datatype, op, comm), request, &datatype);
}

}  // namespace gantry::mpi
