// SPDX-License-Identifier: BSD-3-Clause
//
// Gather, scatter, allgather and all-to-all in all their forms: arguments to coll::Blocks.
#include "coll/gather.hpp"
#include "mpi/bodies.hpp"
#include "mpi/buffer.hpp"
#include "mpi/collective.hpp"
#include "mpi/engine.hpp"
#include "mpi/datatype.hpp"

namespace gantry::mpi {
namespace {

using Started = Result<Task<Status>>;

p2p::Buffer buffer_of(const void* address, MPI_Count count, const Datatype* datatype) {
    return datatype != nullptr ? buffer(address, count, *datatype) : p2p::Buffer{};
}

coll::Blocks equal_blocks(const void* address, MPI_Count count, const Datatype* datatype) {
    coll::Blocks blocks;
    blocks.address = const_cast<void*>(address);
    blocks.count = static_cast<std::uint64_t>(count);
    blocks.layout = datatype != nullptr ? &datatype->layout : nullptr;
    return blocks;
}

// Null arrays when this side does not count.
coll::Blocks listed_blocks(const void* address, const MPI_Count* counts, const MPI_Aint* displs, const Datatype* datatype,
                           int ranks) {
    coll::Blocks blocks = equal_blocks(address, 0, datatype);
    if (datatype == nullptr) return blocks;
    blocks.counts.assign(counts, counts + ranks);
    blocks.displacements.assign(displs, displs + ranks);
    return blocks;
}

coll::Blocks typed_blocks(const void* address, const MPI_Count* counts, const MPI_Aint* displs, const MPI_Datatype* types,
                          int ranks) {
    coll::Blocks blocks = equal_blocks(address, 0, nullptr);
    blocks.counts.assign(counts, counts + ranks);
    blocks.displacements.assign(displs, displs + ranks);
    for (int rank = 0; rank < ranks; ++rank) blocks.layouts.push_back(&find(types[rank])->layout);
    return blocks;
}

Started start_gather(const p2p::Buffer& mine, coll::Blocks all, bool in_place, int root, Comm& comm) {
    return coll::gather(comm.engine->executor(), comm.team(), mine, std::move(all), root, in_place);
}

Started start_scatter(coll::Blocks all, const p2p::Buffer& mine, bool in_place, int root, Comm& comm) {
    return coll::scatter(comm.engine->executor(), comm.team(), std::move(all), mine, root, in_place);
}

Started start_allgather(const p2p::Buffer& mine, coll::Blocks all, bool in_place, Comm& comm) {
    return coll::allgather(comm.engine->executor(), comm.team(), mine, std::move(all), in_place);
}

Started start_alltoall(coll::Blocks outgoing, coll::Blocks incoming, bool in_place, Comm& comm) {
    if (in_place) return coll::alltoall_in_place(comm.engine->executor(), comm.team(), std::move(incoming));
    return coll::alltoall(comm.engine->executor(), comm.team(), std::move(outgoing), std::move(incoming));
}

}  // namespace

// --- gather ----------------------------------------------------------------------------------------------------------------------

Pending gather(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount, Datatype* recvtype,
               int root, Comm& comm) {
    return blocking(comm, start_gather(buffer_of(sendbuf, sendcount, sendtype), equal_blocks(recvbuf, recvcount, recvtype),
                                       sendbuf == MPI_IN_PLACE, root, comm));
}
Status igather(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount, Datatype* recvtype,
               int root, Comm& comm, MPI_Request* request) {
    return nonblocking(comm, start_gather(buffer_of(sendbuf, sendcount, sendtype), equal_blocks(recvbuf, recvcount, recvtype),
                                          sendbuf == MPI_IN_PLACE, root, comm),
                       request, sendtype, recvtype);
}
Pending gatherv(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, const MPI_Count* recvcounts,
                const MPI_Aint* displs, Datatype* recvtype, int root, Comm& comm) {
    return blocking(comm, start_gather(buffer_of(sendbuf, sendcount, sendtype),
                                       listed_blocks(recvbuf, recvcounts, displs, recvtype, comm.size()), sendbuf == MPI_IN_PLACE,
                                       root, comm));
}
Status igatherv(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, const MPI_Count* recvcounts,
                const MPI_Aint* displs, Datatype* recvtype, int root, Comm& comm, MPI_Request* request) {
    return nonblocking(comm, start_gather(buffer_of(sendbuf, sendcount, sendtype),
                                          listed_blocks(recvbuf, recvcounts, displs, recvtype, comm.size()),
                                          sendbuf == MPI_IN_PLACE, root, comm),
                       request, sendtype, recvtype);
}

// --- scatter ---------------------------------------------------------------------------------------------------------------------

Pending scatter(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount, Datatype* recvtype,
                int root, Comm& comm) {
    return blocking(comm, start_scatter(equal_blocks(sendbuf, sendcount, sendtype), buffer_of(recvbuf, recvcount, recvtype),
                                        recvbuf == MPI_IN_PLACE, root, comm));
}
Status iscatter(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount, Datatype* recvtype,
                int root, Comm& comm, MPI_Request* request) {
    return nonblocking(comm, start_scatter(equal_blocks(sendbuf, sendcount, sendtype), buffer_of(recvbuf, recvcount, recvtype),
                                           recvbuf == MPI_IN_PLACE, root, comm),
                       request, sendtype, recvtype);
}
Pending scatterv(const void* sendbuf, const MPI_Count* sendcounts, const MPI_Aint* displs, Datatype* sendtype, void* recvbuf,
                 MPI_Count recvcount, Datatype* recvtype, int root, Comm& comm) {
    return blocking(comm, start_scatter(listed_blocks(sendbuf, sendcounts, displs, sendtype, comm.size()),
                                        buffer_of(recvbuf, recvcount, recvtype), recvbuf == MPI_IN_PLACE, root, comm));
}
Status iscatterv(const void* sendbuf, const MPI_Count* sendcounts, const MPI_Aint* displs, Datatype* sendtype, void* recvbuf,
                 MPI_Count recvcount, Datatype* recvtype, int root, Comm& comm, MPI_Request* request) {
    return nonblocking(comm, start_scatter(listed_blocks(sendbuf, sendcounts, displs, sendtype, comm.size()),
                                           buffer_of(recvbuf, recvcount, recvtype), recvbuf == MPI_IN_PLACE, root, comm),
                       request, sendtype, recvtype);
}

// --- allgather -------------------------------------------------------------------------------------------------------------------

Pending allgather(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount,
                  Datatype* recvtype, Comm& comm) {
    return blocking(comm, start_allgather(buffer_of(sendbuf, sendcount, sendtype), equal_blocks(recvbuf, recvcount, recvtype),
                                          sendbuf == MPI_IN_PLACE, comm));
}
Status iallgather(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount,
                  Datatype* recvtype, Comm& comm, MPI_Request* request) {
    return nonblocking(comm, start_allgather(buffer_of(sendbuf, sendcount, sendtype), equal_blocks(recvbuf, recvcount, recvtype),
                                             sendbuf == MPI_IN_PLACE, comm),
                       request, sendtype, recvtype);
}
Pending allgatherv(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, const MPI_Count* recvcounts,
                   const MPI_Aint* displs, Datatype* recvtype, Comm& comm) {
    return blocking(comm, start_allgather(buffer_of(sendbuf, sendcount, sendtype),
                                          listed_blocks(recvbuf, recvcounts, displs, recvtype, comm.size()),
                                          sendbuf == MPI_IN_PLACE, comm));
}
Status iallgatherv(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, const MPI_Count* recvcounts,
                   const MPI_Aint* displs, Datatype* recvtype, Comm& comm, MPI_Request* request) {
    return nonblocking(comm, start_allgather(buffer_of(sendbuf, sendcount, sendtype),
                                             listed_blocks(recvbuf, recvcounts, displs, recvtype, comm.size()),
                                             sendbuf == MPI_IN_PLACE, comm),
                       request, sendtype, recvtype);
}

// --- all-to-all ------------------------------------------------------------------------------------------------------------------

Pending alltoall(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount,
                 Datatype* recvtype, Comm& comm) {
    return blocking(comm, start_alltoall(equal_blocks(sendbuf, sendcount, sendtype), equal_blocks(recvbuf, recvcount, recvtype),
                                         sendbuf == MPI_IN_PLACE, comm));
}
Status ialltoall(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf, MPI_Count recvcount,
                 Datatype* recvtype, Comm& comm, MPI_Request* request) {
    return nonblocking(comm, start_alltoall(equal_blocks(sendbuf, sendcount, sendtype), equal_blocks(recvbuf, recvcount, recvtype),
                                            sendbuf == MPI_IN_PLACE, comm),
                       request, sendtype, recvtype);
}
Pending alltoallv(const void* sendbuf, const MPI_Count* sendcounts, const MPI_Aint* sdispls, Datatype* sendtype, void* recvbuf,
                  const MPI_Count* recvcounts, const MPI_Aint* rdispls, Datatype* recvtype, Comm& comm) {
    const bool in_place = sendbuf == MPI_IN_PLACE;
    return blocking(comm, start_alltoall(listed_blocks(sendbuf, sendcounts, sdispls, in_place ? nullptr : sendtype, comm.size()),
                                         listed_blocks(recvbuf, recvcounts, rdispls, recvtype, comm.size()), in_place, comm));
}
Status ialltoallv(const void* sendbuf, const MPI_Count* sendcounts, const MPI_Aint* sdispls, Datatype* sendtype, void* recvbuf,
                  const MPI_Count* recvcounts, const MPI_Aint* rdispls, Datatype* recvtype, Comm& comm, MPI_Request* request) {
    const bool in_place = sendbuf == MPI_IN_PLACE;
    return nonblocking(comm, start_alltoall(listed_blocks(sendbuf, sendcounts, sdispls, in_place ? nullptr : sendtype, comm.size()),
                                            listed_blocks(recvbuf, recvcounts, rdispls, recvtype, comm.size()), in_place, comm),
                       request, sendtype, recvtype);
}
Pending alltoallw(const void* sendbuf, const MPI_Count* sendcounts, const MPI_Aint* sdispls, const MPI_Datatype* sendtypes,
                  void* recvbuf, const MPI_Count* recvcounts, const MPI_Aint* rdispls, const MPI_Datatype* recvtypes, Comm& comm) {
    const bool in_place = sendbuf == MPI_IN_PLACE;
    coll::Blocks outgoing;
    if (!in_place) outgoing = typed_blocks(sendbuf, sendcounts, sdispls, sendtypes, comm.size());
    return blocking(comm, start_alltoall(std::move(outgoing), typed_blocks(recvbuf, recvcounts, rdispls, recvtypes, comm.size()),
                                         in_place, comm));
}
Status ialltoallw(const void* sendbuf, const MPI_Count* sendcounts, const MPI_Aint* sdispls, const MPI_Datatype* sendtypes,
                  void* recvbuf, const MPI_Count* recvcounts, const MPI_Aint* rdispls, const MPI_Datatype* recvtypes, Comm& comm,
                  MPI_Request* request) {
    const bool in_place = sendbuf == MPI_IN_PLACE;
    coll::Blocks outgoing;
    if (!in_place) outgoing = typed_blocks(sendbuf, sendcounts, sdispls, sendtypes, comm.size());
    GANTRY_TRY(nonblocking(comm, start_alltoall(std::move(outgoing), typed_blocks(recvbuf, recvcounts, rdispls, recvtypes, comm.size()),
                                                in_place, comm),
                           request));
    for (int rank = 0; rank < comm.size(); ++rank) {
        if (!in_place) comm.engine->requests().keep(*request, *find(sendtypes[rank]));
        comm.engine->requests().keep(*request, *find(recvtypes[rank]));
    }
    return success();
}

}  // namespace gantry::mpi
