// SPDX-License-Identifier: BSD-3-Clause
//
// Barrier, broadcast and the reductions: from MPI's arguments to the algorithms of coll/.
#include "coll/allreduce.hpp"
#include "coll/barrier.hpp"
#include "coll/bcast.hpp"
#include "coll/inter.hpp"
#include "coll/reduce.hpp"
#include "coll/reduce_scatter.hpp"
#include "coll/scan.hpp"
#include "mpi/bodies.hpp"
#include "mpi/coll/block_arguments.hpp"
#include "mpi/coll/collective_call.hpp"
#include "mpi/coll/op.hpp"
#include "mpi/engine/buffer.hpp"

namespace gantry::mpi {
namespace {

// The two sides of a reduction; in place, the receive buffer is both.
struct BothSides {
    p2p::Buffer source, sink;
};
BothSides sides(const void* sendbuf, void* recvbuf, MPI_Count count, const Datatype& datatype) {
    const p2p::Buffer sink = buffer(recvbuf, count, datatype);
    return {sendbuf == MPI_IN_PLACE ? sink : buffer(sendbuf, count, datatype), sink};
}

Result<CollectiveCall> scan_of(const void* sendbuf, void* recvbuf, MPI_Count count,
                               Datatype& datatype, const Op& op, bool exclusive, const Comm& comm) {
    Result<coll::Reducer> how = reducer(op, datatype);
    if (!how.ok()) return std::move(how).status();
    return CollectiveCall{
        [both = sides(sendbuf, recvbuf, count, datatype), reduce = *how,
         exclusive](coll::Team team) {
            return coll::scan(team.executor(), team, both.source, both.sink, reduce, exclusive);
        },
        {&datatype},
        {},
        Agreement(comm, exclusive ? "MPI_Exscan" : "MPI_Scan", Said::kNothing, &op)
            .has(buffer(recvbuf, count, datatype))};
}

// Each rank's part of a vector whose parts follow each other.
coll::Blocks shares_of(std::vector<std::int64_t> counts, const Datatype& datatype) {
    coll::Blocks shares;
    shares.layout = &datatype.layout;
    std::int64_t before = 0;
    for (std::int64_t count : counts) {
        shares.displacements.push_back(before);
        before += count;
    }
    shares.counts = std::move(counts);
    return shares;
}

MPI_Count total_of(const coll::Blocks& shares) {
    return shares.displacements.back() + shares.counts.back();
}

Result<CollectiveCall> reduce_shares(const Agreement& agreement, const void* sendbuf, void* recvbuf,
                                     coll::Blocks shares, Datatype& datatype, const Op& op,
                                     const Comm& comm) {
    Result<coll::Reducer> how = reducer(op, datatype);
    if (!how.ok()) return std::move(how).status();
    const MPI_Count total = total_of(shares);
    const p2p::Buffer sink =
        buffer(recvbuf, shares.counts[static_cast<std::size_t>(comm.rank())], datatype);
    // In place, the whole vector stands in the receive buffer.
    const p2p::Buffer source = buffer(sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, total, datatype);
    if (comm.is_inter())
        return CollectiveCall{
            [source, sink, shares = std::move(shares), reduce = *how](coll::Team team) {
                return coll::inter_reduce_scatter(team.executor(), coll::Sides(team), source,
                                                  shares, sink, reduce);
            },
            {&datatype},
            {},
            agreement};
    return CollectiveCall{
        [source, sink, shares = std::move(shares), reduce = *how](coll::Team team) {
            return coll::reduce_scatter(team.executor(), team, source, shares, sink, reduce);
        },
        {&datatype},
        {},
        agreement};
}

Task<Status> take_no_part(coll::Team) {
    return Task<Status>(success());
}

}  // namespace

Result<CollectiveCall> barrier(Comm& comm) {
    const Agreement agreement(comm, "MPI_Barrier");
    if (comm.is_inter())
        return CollectiveCall{
            [](coll::Team team) { return coll::inter_barrier(team.executor(), coll::Sides(team)); },
            {},
            {},
            agreement};
    return CollectiveCall{
        [](coll::Team team) { return coll::barrier(team.executor(), team); }, {}, {}, agreement};
}

Result<CollectiveCall> bcast(void* address, MPI_Count count, Datatype* datatype, int root,
                             Comm& comm) {
    const p2p::Buffer data = one_block(address, count, datatype);
    const Agreement agreement = Agreement(comm, "MPI_Bcast", root).has(data);
    if (comm.is_inter())
        return CollectiveCall{[data, root](coll::Team team) {
                                  return coll::inter_bcast(team.executor(), coll::Sides(team), data,
                                                           root);
                              },
                              {datatype},
                              {},
                              agreement};
    return CollectiveCall{
        [data, root](coll::Team team) { return coll::bcast(team.executor(), team, data, root); },
        {datatype},
        {},
        agreement};
}

Result<CollectiveCall> allreduce(const void* sendbuf, void* recvbuf, MPI_Count count,
                                 Datatype& datatype, Op& op, Comm& comm) {
    Result<coll::Reducer> how = reducer(op, datatype);
    if (!how.ok()) return std::move(how).status();
    const Agreement agreement =
        Agreement(comm, "MPI_Allreduce", Said::kNothing, &op).has(buffer(recvbuf, count, datatype));
    if (comm.is_inter())
        return CollectiveCall{
            [both = sides(sendbuf, recvbuf, count, datatype), reduce = *how](coll::Team team) {
                return coll::inter_allreduce(team.executor(), coll::Sides(team), both.source,
                                             both.sink, reduce);
            },
            {&datatype},
            {},
            agreement};
    return CollectiveCall{
        [both = sides(sendbuf, recvbuf, count, datatype), reduce = *how](coll::Team team) {
            return coll::allreduce(team.executor(), team, both.source, both.sink, reduce);
        },
        {&datatype},
        {},
        agreement};
}

Result<CollectiveCall> reduce(const void* sendbuf, void* recvbuf, MPI_Count count,
                              Datatype* datatype, Op* op, int root, Comm& comm) {
    // Beside the root of an inter-communicator; nothing else of the call means anything here.
    if (datatype == nullptr)
        return CollectiveCall{take_no_part, {}, {}, Agreement(comm, "MPI_Reduce", root)};
    Result<coll::Reducer> how = reducer(*op, *datatype);
    if (!how.ok()) return std::move(how).status();
    const BothSides both = sides(sendbuf, recvbuf, count, *datatype);
    const Agreement agreement = Agreement(comm, "MPI_Reduce", root, op).has(both.sink);
    if (comm.is_inter())
        return CollectiveCall{[both, reduce = *how, root](coll::Team team) {
                                  return coll::inter_reduce(team.executor(), coll::Sides(team),
                                                            both.source, both.sink, reduce, root);
                              },
                              {datatype},
                              {},
                              agreement};
    return CollectiveCall{[both, reduce = *how, root](coll::Team team) {
                              return coll::reduce(team.executor(), team, both.source, both.sink,
                                                  reduce, root);
                          },
                          {datatype},
                          {},
                          agreement};
}

Result<CollectiveCall> scan(const void* sendbuf, void* recvbuf, MPI_Count count, Datatype& datatype,
                            Op& op, Comm& comm) {
    return scan_of(sendbuf, recvbuf, count, datatype, op, false, comm);
}

Result<CollectiveCall> exscan(const void* sendbuf, void* recvbuf, MPI_Count count,
                              Datatype& datatype, Op& op, Comm& comm) {
    return scan_of(sendbuf, recvbuf, count, datatype, op, true, comm);
}

Result<CollectiveCall> reduce_scatter_block(const void* sendbuf, void* recvbuf, MPI_Count recvcount,
                                            Datatype& datatype, Op& op, Comm& comm) {
    const std::vector<std::int64_t> counts(static_cast<std::size_t>(comm.size()), recvcount);
    coll::Blocks shares = shares_of(counts, datatype);
    const Agreement agreement = Agreement(comm, "MPI_Reduce_scatter_block", Said::kNothing, &op)
                                    .has(buffer(recvbuf, total_of(shares), datatype));
    return reduce_shares(agreement, sendbuf, recvbuf, std::move(shares), datatype, op, comm);
}

Result<CollectiveCall> reduce_scatter(const void* sendbuf, void* recvbuf,
                                      const MPI_Count* recvcounts, Datatype& datatype, Op& op,
                                      Comm& comm) {
    std::vector<std::int64_t> counts(recvcounts, recvcounts + comm.size());
    coll::Blocks shares = shares_of(std::move(counts), datatype);
    const Agreement agreement = Agreement(comm, "MPI_Reduce_scatter", Said::kNothing, &op)
                                    .has(buffer(recvbuf, total_of(shares), datatype))
                                    .divides(shares);
    return reduce_shares(agreement, sendbuf, recvbuf, std::move(shares), datatype, op, comm);
}

}  // namespace gantry::mpi
