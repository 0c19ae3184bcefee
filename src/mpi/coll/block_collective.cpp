// SPDX-License-Identifier: BSD-3-Clause
//
// Gather, scatter, allgather and all-to-all in all their forms: from MPI's arguments to the
// algorithms of coll/. An operation and its v and w forms differ in how their blocks are described.
// On an inter-communicator the blocks are those of the remote group, and nothing is in place.
#include "coll/gather.hpp"
#include "coll/inter.hpp"
#include "mpi/bodies.hpp"
#include "mpi/coll/block_arguments.hpp"
#include "mpi/coll/collective_call.hpp"

namespace gantry::mpi {
namespace {

Result<CollectiveCall> gather_blocks(const p2p::Buffer& mine, coll::Blocks all, bool in_place,
                                     int root, const Comm& comm, coll::BlockSizes sizes) {
    if (comm.is_inter())
        return CollectiveCall{[mine, all = std::move(all), root](coll::Team team) {
            return coll::inter_gather(team.executor(), coll::Sides(team), mine, all, root);
        }};
    if (comm.rank() == root && !in_place) GANTRY_TRY(check_distinct(mine, all, comm.rank()));
    return CollectiveCall{[mine, all = std::move(all), in_place, root, sizes](coll::Team team) {
        return coll::gather(team.executor(), team, mine, all, root, in_place, sizes);
    }};
}

Result<CollectiveCall> scatter_blocks(coll::Blocks all, const p2p::Buffer& mine, bool in_place,
                                      int root, const Comm& comm, coll::BlockSizes sizes) {
    if (comm.is_inter())
        return CollectiveCall{[mine, all = std::move(all), root](coll::Team team) {
            return coll::inter_scatter(team.executor(), coll::Sides(team), all, mine, root);
        }};
    if (comm.rank() == root && !in_place) GANTRY_TRY(check_distinct(mine, all, comm.rank()));
    return CollectiveCall{[mine, all = std::move(all), in_place, root, sizes](coll::Team team) {
        return coll::scatter(team.executor(), team, all, mine, root, in_place, sizes);
    }};
}

Result<CollectiveCall> allgather_blocks(const p2p::Buffer& mine, coll::Blocks all, bool in_place,
                                        const Comm& comm) {
    if (comm.is_inter())
        return CollectiveCall{[mine, all = std::move(all)](coll::Team team) {
            return coll::inter_allgather(team.executor(), coll::Sides(team), mine, all);
        }};
    if (!in_place) GANTRY_TRY(check_distinct(mine, all, comm.rank()));
    return CollectiveCall{[mine, all = std::move(all), in_place](coll::Team team) {
        return coll::allgather(team.executor(), team, mine, all, in_place);
    }};
}

Result<CollectiveCall> exchange_blocks(coll::Blocks outgoing, coll::Blocks incoming, bool in_place,
                                       const Comm& comm) {
    if (comm.is_inter())
        return CollectiveCall{
            [outgoing = std::move(outgoing), incoming = std::move(incoming)](coll::Team team) {
                return coll::inter_alltoall(team.executor(), coll::Sides(team), outgoing, incoming);
            }};
    if (in_place)
        return CollectiveCall{[incoming = std::move(incoming)](coll::Team team) {
            return coll::alltoall_in_place(team.executor(), team, incoming);
        }};
    GANTRY_TRY(check_distinct(outgoing.of(comm.rank()), incoming, comm.rank()));
    return CollectiveCall{
        [outgoing = std::move(outgoing), incoming = std::move(incoming)](coll::Team team) {
            return coll::alltoall(team.executor(), team, outgoing, incoming);
        }};
}

// The datatypes stay alive as long as a request for the operation.
Result<CollectiveCall> with_types(const Agreement& agreement, Result<CollectiveCall> call,
                                  Datatype* sendtype, Datatype* recvtype) {
    if (!call.ok()) return call;
    call->agreement = agreement;
    call->types[0] = sendtype;
    call->types[1] = recvtype;
    return call;
}

}  // namespace

Result<CollectiveCall> gather(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype,
                              void* recvbuf, MPI_Count recvcount, Datatype* recvtype, int root,
                              Comm& comm) {
    const p2p::Buffer mine = one_block(sendbuf, sendcount, sendtype);
    return with_types(Agreement(comm, "MPI_Gather", root)
                          .sends(mine)
                          .receives(one_block(recvbuf, recvcount, recvtype)),
                      gather_blocks(mine, equal_blocks(recvbuf, recvcount, recvtype),
                                    sendbuf == MPI_IN_PLACE, root, comm, coll::BlockSizes::equal),
                      sendtype, recvtype);
}

Result<CollectiveCall> gatherv(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype,
                               void* recvbuf, const MPI_Count* recvcounts, const MPI_Aint* displs,
                               Datatype* recvtype, int root, Comm& comm) {
    const p2p::Buffer mine = one_block(sendbuf, sendcount, sendtype);
    coll::Blocks all = listed_blocks(recvbuf, recvcounts, displs, recvtype, comm.peers());
    const Agreement agreement =
        Agreement(comm, "MPI_Gatherv", root).sends(mine).names_received(all);
    return with_types(agreement,
                      gather_blocks(mine, std::move(all), sendbuf == MPI_IN_PLACE, root, comm,
                                    coll::BlockSizes::listed),
                      sendtype, recvtype);
}

Result<CollectiveCall> scatter(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype,
                               void* recvbuf, MPI_Count recvcount, Datatype* recvtype, int root,
                               Comm& comm) {
    const p2p::Buffer mine = one_block(recvbuf, recvcount, recvtype);
    return with_types(Agreement(comm, "MPI_Scatter", root)
                          .sends(one_block(sendbuf, sendcount, sendtype))
                          .receives(mine),
                      scatter_blocks(equal_blocks(sendbuf, sendcount, sendtype), mine,
                                     recvbuf == MPI_IN_PLACE, root, comm, coll::BlockSizes::equal),
                      sendtype, recvtype);
}

Result<CollectiveCall> scatterv(const void* sendbuf, const MPI_Count* sendcounts,
                                const MPI_Aint* displs, Datatype* sendtype, void* recvbuf,
                                MPI_Count recvcount, Datatype* recvtype, int root, Comm& comm) {
    const p2p::Buffer mine = one_block(recvbuf, recvcount, recvtype);
    coll::Blocks all = listed_blocks(sendbuf, sendcounts, displs, sendtype, comm.peers());
    const Agreement agreement =
        Agreement(comm, "MPI_Scatterv", root).names_sent(all).receives(mine);
    return with_types(agreement,
                      scatter_blocks(std::move(all), mine, recvbuf == MPI_IN_PLACE, root, comm,
                                     coll::BlockSizes::listed),
                      sendtype, recvtype);
}

Result<CollectiveCall> allgather(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype,
                                 void* recvbuf, MPI_Count recvcount, Datatype* recvtype,
                                 Comm& comm) {
    const p2p::Buffer mine = one_block(sendbuf, sendcount, sendtype);
    return with_types(Agreement(comm, "MPI_Allgather")
                          .sends(mine)
                          .receives(one_block(recvbuf, recvcount, recvtype)),
                      allgather_blocks(mine, equal_blocks(recvbuf, recvcount, recvtype),
                                       sendbuf == MPI_IN_PLACE, comm),
                      sendtype, recvtype);
}

Result<CollectiveCall> allgatherv(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype,
                                  void* recvbuf, const MPI_Count* recvcounts,
                                  const MPI_Aint* displs, Datatype* recvtype, Comm& comm) {
    const bool in_place = sendbuf == MPI_IN_PLACE;
    const p2p::Buffer mine = one_block(sendbuf, sendcount, sendtype);
    coll::Blocks all = listed_blocks(recvbuf, recvcounts, displs, recvtype, comm.peers());
    const Agreement agreement = Agreement(comm, "MPI_Allgatherv")
                                    .sends(in_place ? all.of(comm.rank()) : mine)
                                    .names_received(all);
    return with_types(agreement, allgather_blocks(mine, std::move(all), in_place, comm), sendtype,
                      recvtype);
}

Result<CollectiveCall> alltoall(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype,
                                void* recvbuf, MPI_Count recvcount, Datatype* recvtype,
                                Comm& comm) {
    return with_types(
        Agreement(comm, "MPI_Alltoall")
            .sends(one_block(sendbuf, sendcount, sendtype))
            .receives(one_block(recvbuf, recvcount, recvtype)),
        exchange_blocks(equal_blocks(sendbuf, sendcount, sendtype),
                        equal_blocks(recvbuf, recvcount, recvtype), sendbuf == MPI_IN_PLACE, comm),
        sendtype, recvtype);
}

Result<CollectiveCall> alltoallv(const void* sendbuf, const MPI_Count* sendcounts,
                                 const MPI_Aint* sdispls, Datatype* sendtype, void* recvbuf,
                                 const MPI_Count* recvcounts, const MPI_Aint* rdispls,
                                 Datatype* recvtype, Comm& comm) {
    const bool in_place = sendbuf == MPI_IN_PLACE;
    coll::Blocks outgoing = listed_blocks(sendbuf, sendcounts, sdispls, sendtype, comm.peers()),
                 incoming = listed_blocks(recvbuf, recvcounts, rdispls, recvtype, comm.peers());
    const Agreement agreement =
        Agreement(comm, "MPI_Alltoallv").exchanges(in_place ? incoming : outgoing, incoming);
    return with_types(agreement,
                      exchange_blocks(std::move(outgoing), std::move(incoming), in_place, comm),
                      sendtype, recvtype);
}

Result<CollectiveCall> alltoallw(const void* sendbuf, const MPI_Count* sendcounts,
                                 const MPI_Aint* sdispls, const MPI_Datatype* sendtypes,
                                 void* recvbuf, const MPI_Count* recvcounts,
                                 const MPI_Aint* rdispls, const MPI_Datatype* recvtypes,
                                 Comm& comm) {
    const bool in_place = sendbuf == MPI_IN_PLACE && !comm.is_inter();
    coll::Blocks outgoing;
    if (!in_place) outgoing = typed_blocks(sendbuf, sendcounts, sdispls, sendtypes, comm.peers());
    coll::Blocks incoming = typed_blocks(recvbuf, recvcounts, rdispls, recvtypes, comm.peers());
    const Agreement agreement =
        Agreement(comm, "MPI_Alltoallw").exchanges(in_place ? incoming : outgoing, incoming);
    Result<CollectiveCall> call =
        exchange_blocks(std::move(outgoing), std::move(incoming), in_place, comm);
    if (!call.ok()) return call;
    call->agreement = agreement;
    for (int rank = 0; rank < comm.peers(); ++rank) {
        if (!in_place) call->types_of_blocks.push_back(find(sendtypes[rank]));
        call->types_of_blocks.push_back(find(recvtypes[rank]));
    }
    return call;
}

}  // namespace gantry::mpi
