// SPDX-License-Identifier: BSD-3-Clause
//
// Neighbor collectives in all their forms: from MPI's arguments to coll::neighbor_exchange. An
// operation and its v and w forms differ in how their blocks are described.
#include "coll/neighbor_exchange.hpp"
#include "mpi/bodies.hpp"
#include "mpi/coll/block_arguments.hpp"
#include "mpi/coll/collective_call.hpp"
#include "mpi/topo/topology.hpp"

namespace gantry::mpi {
namespace {

// The datatypes stay alive as long as a request for the operation.
Result<CollectiveCall> exchange_blocks(const char* function, const Comm& comm,
                                       coll::Blocks outgoing, coll::Blocks incoming,
                                       Datatype* sendtype = nullptr, Datatype* recvtype = nullptr) {
    Result<std::shared_ptr<const coll::Neighbors>> neighbors = neighbors_of(comm);
    if (!neighbors.ok()) return std::move(neighbors).status();
    const Agreement agreement =
        Agreement(comm, function).exchanges(outgoing, incoming, neighbors.value());
    CollectiveCall call{[neighbors = std::move(*neighbors), outgoing = std::move(outgoing),
                         incoming = std::move(incoming)](coll::Team team) {
        return coll::neighbor_exchange(team.executor(), team, neighbors, outgoing, incoming);
    }};
    call.types[0] = sendtype;
    call.types[1] = recvtype;
    call.agreement = agreement;
    return call;
}

coll::Blocks same_blocks(const void* address, MPI_Count count, const Datatype& datatype,
                         const Comm& comm) {
    return coll::same_for_all(one_block(address, count, &datatype),
                              static_cast<std::size_t>(blocks_out(comm)));
}

}  // namespace

Result<CollectiveCall> neighbor_allgather(const void* sendbuf, MPI_Count sendcount,
                                          Datatype& sendtype, void* recvbuf, MPI_Count recvcount,
                                          Datatype& recvtype, Comm& comm) {
    return exchange_blocks("MPI_Neighbor_allgather", comm,
                           same_blocks(sendbuf, sendcount, sendtype, comm),
                           equal_blocks(recvbuf, recvcount, &recvtype), &sendtype, &recvtype);
}

Result<CollectiveCall> neighbor_allgatherv(const void* sendbuf, MPI_Count sendcount,
                                           Datatype& sendtype, void* recvbuf,
                                           const MPI_Count* recvcounts, const MPI_Aint* displs,
                                           Datatype& recvtype, Comm& comm) {
    return exchange_blocks("MPI_Neighbor_allgatherv", comm,
                           same_blocks(sendbuf, sendcount, sendtype, comm),
                           listed_blocks(recvbuf, recvcounts, displs, &recvtype, blocks_in(comm)),
                           &sendtype, &recvtype);
}

Result<CollectiveCall> neighbor_alltoall(const void* sendbuf, MPI_Count sendcount,
                                         Datatype& sendtype, void* recvbuf, MPI_Count recvcount,
                                         Datatype& recvtype, Comm& comm) {
    return exchange_blocks("MPI_Neighbor_alltoall", comm,
                           equal_blocks(sendbuf, sendcount, &sendtype),
                           equal_blocks(recvbuf, recvcount, &recvtype), &sendtype, &recvtype);
}

Result<CollectiveCall> neighbor_alltoallv(const void* sendbuf, const MPI_Count* sendcounts,
                                          const MPI_Aint* sdispls, Datatype& sendtype,
                                          void* recvbuf, const MPI_Count* recvcounts,
                                          const MPI_Aint* rdispls, Datatype& recvtype, Comm& comm) {
    return exchange_blocks("MPI_Neighbor_alltoallv", comm,
                           listed_blocks(sendbuf, sendcounts, sdispls, &sendtype, blocks_out(comm)),
                           listed_blocks(recvbuf, recvcounts, rdispls, &recvtype, blocks_in(comm)),
                           &sendtype, &recvtype);
}

Result<CollectiveCall> neighbor_alltoallw(const void* sendbuf, const MPI_Count* sendcounts,
                                          const MPI_Aint* sdispls, const MPI_Datatype* sendtypes,
                                          void* recvbuf, const MPI_Count* recvcounts,
                                          const MPI_Aint* rdispls, const MPI_Datatype* recvtypes,
                                          Comm& comm) {
    const int out = blocks_out(comm), in = blocks_in(comm);
    Result<CollectiveCall> call = exchange_blocks(
        "MPI_Neighbor_alltoallw", comm, typed_blocks(sendbuf, sendcounts, sdispls, sendtypes, out),
        typed_blocks(recvbuf, recvcounts, rdispls, recvtypes, in));
    if (!call.ok()) return call;
    for (int block = 0; block < out; ++block)
        call->types_of_blocks.push_back(find(sendtypes[block]));
    for (int block = 0; block < in; ++block)
        call->types_of_blocks.push_back(find(recvtypes[block]));
    return call;
}

}  // namespace gantry::mpi
