// SPDX-License-Identifier: BSD-3-Clause
//
// Gather, scatter, allgather and all-to-all in all their forms: arguments to coll::Blocks. A side
// whose datatype is null does not count on this rank.
#include "coll/gather.hpp"
#include "mpi/bodies.hpp"
#include "mpi/engine/buffer.hpp"
#include "mpi/coll/collective.hpp"
#include "mpi/datatype/datatype.hpp"
#include "mpi/engine/engine.hpp"

namespace gantry::mpi {
namespace {

Executor& executor_of(const coll::Team& team) {
    return team.messenger->executor();
}

p2p::Buffer one(const void* address, MPI_Count count, const Datatype* datatype) {
    return datatype != nullptr ? buffer(address, count, *datatype) : p2p::Buffer{};
}

coll::Blocks equal(const void* address, MPI_Count count, const Datatype* datatype) {
    coll::Blocks blocks;
    blocks.address = const_cast<void*>(address);
    blocks.count = static_cast<std::uint64_t>(count);
    blocks.layout = datatype != nullptr ? &datatype->layout : nullptr;
    return blocks;
}

coll::Blocks listed(const void* address, const MPI_Count* counts, const MPI_Aint* displs,
                    const Datatype* datatype, const Comm& comm) {
    coll::Blocks blocks = equal(address, 0, datatype);
    if (datatype == nullptr || address == MPI_IN_PLACE) return blocks;
    blocks.counts.assign(counts, counts + comm.size());
    blocks.displacements.assign(displs, displs + comm.size());
    return blocks;
}

coll::Blocks typed(const void* address, const MPI_Count* counts, const MPI_Aint* displs,
                   const MPI_Datatype* types, const Comm& comm) {
    coll::Blocks blocks = equal(address, 0, nullptr);
    blocks.counts.assign(counts, counts + comm.size());
    blocks.displacements.assign(displs, displs + comm.size());
    for (int rank = 0; rank < comm.size(); ++rank)
        blocks.layouts.push_back(&find(types[rank])->layout);
    return blocks;
}

// The datatypes of both sides of an MPI_Alltoallw.
Types types_of(const void* sendbuf, const MPI_Datatype* sendtypes, const MPI_Datatype* recvtypes,
               const Comm& comm) {
    Types types;
    for (int rank = 0; rank < comm.size(); ++rank) {
        if (sendbuf != MPI_IN_PLACE) types.push_back(find(sendtypes[rank]));
        types.push_back(find(recvtypes[rank]));
    }
    return types;
}

// The program's own block must not be read and written at once: MPI_IN_PLACE is for that. Also
// refused is a part that is the first rank's block, the usual mistake.
Status check_distinct(const p2p::Buffer& part, const coll::Blocks& whole, bool in_place, int rank) {
    if (in_place || part.bytes() == 0 || part.address == nullptr || whole.address == nullptr)
        return success();
    const auto is_part = [&](const p2p::Buffer& block) {
        return block.bytes() != 0 && block.address == part.address;
    };
    if (!is_part(whole.of(rank)) && !is_part(whole.of(0))) return success();
    return failure(MPI_ERR_BUFFER, "sendbuf and recvbuf overlap at {}: use MPI_IN_PLACE",
                   part.address);
}

Result<Plan> plan_gather(const p2p::Buffer& mine, coll::Blocks all, bool in_place, int root,
                         const Comm& comm) {
    if (comm.rank() == root) GANTRY_TRY(check_distinct(mine, all, in_place, comm.rank()));
    return Plan([mine, all = std::move(all), in_place, root](coll::Team team) {
        return coll::gather(executor_of(team), team, mine, all, root, in_place);
    });
}

Result<Plan> plan_scatter(coll::Blocks all, const p2p::Buffer& mine, bool in_place, int root,
                          const Comm& comm) {
    if (comm.rank() == root) GANTRY_TRY(check_distinct(mine, all, in_place, comm.rank()));
    return Plan([mine, all = std::move(all), in_place, root](coll::Team team) {
        return coll::scatter(executor_of(team), team, all, mine, root, in_place);
    });
}

Result<Plan> plan_allgather(const p2p::Buffer& mine, coll::Blocks all, bool in_place,
                            const Comm& comm) {
    GANTRY_TRY(check_distinct(mine, all, in_place, comm.rank()));
    return Plan([mine, all = std::move(all), in_place](coll::Team team) {
        return coll::allgather(executor_of(team), team, mine, all, in_place);
    });
}

Result<Plan> plan_alltoall(coll::Blocks outgoing, coll::Blocks incoming, bool in_place,
                           const Comm& comm) {
    if (!in_place)
        GANTRY_TRY(check_distinct(outgoing.of(comm.rank()), incoming, in_place, comm.rank()));
    return Plan([outgoing = std::move(outgoing), incoming = std::move(incoming),
                 in_place](coll::Team team) {
        return in_place ? coll::alltoall_in_place(executor_of(team), team, incoming)
                        : coll::alltoall(executor_of(team), team, outgoing, incoming);
    });
}

Result<Plan> plan_alltoallw(const void* sendbuf, const MPI_Count* sendcounts,
                            const MPI_Aint* sdispls, const MPI_Datatype* sendtypes, void* recvbuf,
                            const MPI_Count* recvcounts, const MPI_Aint* rdispls,
                            const MPI_Datatype* recvtypes, const Comm& comm) {
    const bool in_place = sendbuf == MPI_IN_PLACE;
    coll::Blocks outgoing;
    if (!in_place) outgoing = typed(sendbuf, sendcounts, sdispls, sendtypes, comm);
    return plan_alltoall(std::move(outgoing), typed(recvbuf, recvcounts, rdispls, recvtypes, comm),
                         in_place, comm);
}

}  // namespace

Pending gather(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
               MPI_Count recvcount, Datatype* recvtype, int root, Comm& comm) {
    return blocking(
        comm, plan_gather(one(sendbuf, sendcount, sendtype), equal(recvbuf, recvcount, recvtype),
                          sendbuf == MPI_IN_PLACE, root, comm));
}
Status igather(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
               MPI_Count recvcount, Datatype* recvtype, int root, Comm& comm,
               MPI_Request* request) {
    return nonblocking(
        comm,
        plan_gather(one(sendbuf, sendcount, sendtype), equal(recvbuf, recvcount, recvtype),
                    sendbuf == MPI_IN_PLACE, root, comm),
        {sendtype, recvtype}, request);
}
Status gather_init(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                   MPI_Count recvcount, Datatype* recvtype, int root, Comm& comm, Info*,
                   MPI_Request* request) {
    return persistent(
        comm,
        plan_gather(one(sendbuf, sendcount, sendtype), equal(recvbuf, recvcount, recvtype),
                    sendbuf == MPI_IN_PLACE, root, comm),
        {sendtype, recvtype}, request);
}

Pending gatherv(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                const MPI_Count* recvcounts, const MPI_Aint* displs, Datatype* recvtype, int root,
                Comm& comm) {
    return blocking(comm, plan_gather(one(sendbuf, sendcount, sendtype),
                                      listed(recvbuf, recvcounts, displs, recvtype, comm),
                                      sendbuf == MPI_IN_PLACE, root, comm));
}
Status igatherv(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                const MPI_Count* recvcounts, const MPI_Aint* displs, Datatype* recvtype, int root,
                Comm& comm, MPI_Request* request) {
    return nonblocking(comm,
                       plan_gather(one(sendbuf, sendcount, sendtype),
                                   listed(recvbuf, recvcounts, displs, recvtype, comm),
                                   sendbuf == MPI_IN_PLACE, root, comm),
                       {sendtype, recvtype}, request);
}
Status gatherv_init(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                    const MPI_Count* recvcounts, const MPI_Aint* displs, Datatype* recvtype,
                    int root, Comm& comm, Info*, MPI_Request* request) {
    return persistent(comm,
                      plan_gather(one(sendbuf, sendcount, sendtype),
                                  listed(recvbuf, recvcounts, displs, recvtype, comm),
                                  sendbuf == MPI_IN_PLACE, root, comm),
                      {sendtype, recvtype}, request);
}

Pending scatter(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                MPI_Count recvcount, Datatype* recvtype, int root, Comm& comm) {
    return blocking(
        comm, plan_scatter(equal(sendbuf, sendcount, sendtype), one(recvbuf, recvcount, recvtype),
                           recvbuf == MPI_IN_PLACE, root, comm));
}
Status iscatter(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                MPI_Count recvcount, Datatype* recvtype, int root, Comm& comm,
                MPI_Request* request) {
    return nonblocking(
        comm,
        plan_scatter(equal(sendbuf, sendcount, sendtype), one(recvbuf, recvcount, recvtype),
                     recvbuf == MPI_IN_PLACE, root, comm),
        {sendtype, recvtype}, request);
}
Status scatter_init(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                    MPI_Count recvcount, Datatype* recvtype, int root, Comm& comm, Info*,
                    MPI_Request* request) {
    return persistent(
        comm,
        plan_scatter(equal(sendbuf, sendcount, sendtype), one(recvbuf, recvcount, recvtype),
                     recvbuf == MPI_IN_PLACE, root, comm),
        {sendtype, recvtype}, request);
}

Pending scatterv(const void* sendbuf, const MPI_Count* sendcounts, const MPI_Aint* displs,
                 Datatype* sendtype, void* recvbuf, MPI_Count recvcount, Datatype* recvtype,
                 int root, Comm& comm) {
    return blocking(
        comm, plan_scatter(listed(sendbuf, sendcounts, displs, sendtype, comm),
                           one(recvbuf, recvcount, recvtype), recvbuf == MPI_IN_PLACE, root, comm));
}
Status iscatterv(const void* sendbuf, const MPI_Count* sendcounts, const MPI_Aint* displs,
                 Datatype* sendtype, void* recvbuf, MPI_Count recvcount, Datatype* recvtype,
                 int root, Comm& comm, MPI_Request* request) {
    return nonblocking(
        comm,
        plan_scatter(listed(sendbuf, sendcounts, displs, sendtype, comm),
                     one(recvbuf, recvcount, recvtype), recvbuf == MPI_IN_PLACE, root, comm),
        {sendtype, recvtype}, request);
}
Status scatterv_init(const void* sendbuf, const MPI_Count* sendcounts, const MPI_Aint* displs,
                     Datatype* sendtype, void* recvbuf, MPI_Count recvcount, Datatype* recvtype,
                     int root, Comm& comm, Info*, MPI_Request* request) {
    return persistent(
        comm,
        plan_scatter(listed(sendbuf, sendcounts, displs, sendtype, comm),
                     one(recvbuf, recvcount, recvtype), recvbuf == MPI_IN_PLACE, root, comm),
        {sendtype, recvtype}, request);
}

Pending allgather(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                  MPI_Count recvcount, Datatype* recvtype, Comm& comm) {
    return blocking(
        comm, plan_allgather(one(sendbuf, sendcount, sendtype), equal(recvbuf, recvcount, recvtype),
                             sendbuf == MPI_IN_PLACE, comm));
}
Status iallgather(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                  MPI_Count recvcount, Datatype* recvtype, Comm& comm, MPI_Request* request) {
    return nonblocking(
        comm,
        plan_allgather(one(sendbuf, sendcount, sendtype), equal(recvbuf, recvcount, recvtype),
                       sendbuf == MPI_IN_PLACE, comm),
        {sendtype, recvtype}, request);
}
Status allgather_init(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                      MPI_Count recvcount, Datatype* recvtype, Comm& comm, Info*,
                      MPI_Request* request) {
    return persistent(
        comm,
        plan_allgather(one(sendbuf, sendcount, sendtype), equal(recvbuf, recvcount, recvtype),
                       sendbuf == MPI_IN_PLACE, comm),
        {sendtype, recvtype}, request);
}

Pending allgatherv(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                   const MPI_Count* recvcounts, const MPI_Aint* displs, Datatype* recvtype,
                   Comm& comm) {
    return blocking(comm, plan_allgather(one(sendbuf, sendcount, sendtype),
                                         listed(recvbuf, recvcounts, displs, recvtype, comm),
                                         sendbuf == MPI_IN_PLACE, comm));
}
Status iallgatherv(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                   const MPI_Count* recvcounts, const MPI_Aint* displs, Datatype* recvtype,
                   Comm& comm, MPI_Request* request) {
    return nonblocking(comm,
                       plan_allgather(one(sendbuf, sendcount, sendtype),
                                      listed(recvbuf, recvcounts, displs, recvtype, comm),
                                      sendbuf == MPI_IN_PLACE, comm),
                       {sendtype, recvtype}, request);
}
Status allgatherv_init(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                       const MPI_Count* recvcounts, const MPI_Aint* displs, Datatype* recvtype,
                       Comm& comm, Info*, MPI_Request* request) {
    return persistent(comm,
                      plan_allgather(one(sendbuf, sendcount, sendtype),
                                     listed(recvbuf, recvcounts, displs, recvtype, comm),
                                     sendbuf == MPI_IN_PLACE, comm),
                      {sendtype, recvtype}, request);
}

Pending alltoall(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                 MPI_Count recvcount, Datatype* recvtype, Comm& comm) {
    return blocking(
        comm, plan_alltoall(equal(sendbuf, sendcount, sendtype),
                            equal(recvbuf, recvcount, recvtype), sendbuf == MPI_IN_PLACE, comm));
}
Status ialltoall(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                 MPI_Count recvcount, Datatype* recvtype, Comm& comm, MPI_Request* request) {
    return nonblocking(
        comm,
        plan_alltoall(equal(sendbuf, sendcount, sendtype), equal(recvbuf, recvcount, recvtype),
                      sendbuf == MPI_IN_PLACE, comm),
        {sendtype, recvtype}, request);
}
Status alltoall_init(const void* sendbuf, MPI_Count sendcount, Datatype* sendtype, void* recvbuf,
                     MPI_Count recvcount, Datatype* recvtype, Comm& comm, Info*,
                     MPI_Request* request) {
    return persistent(
        comm,
        plan_alltoall(equal(sendbuf, sendcount, sendtype), equal(recvbuf, recvcount, recvtype),
                      sendbuf == MPI_IN_PLACE, comm),
        {sendtype, recvtype}, request);
}

Pending alltoallv(const void* sendbuf, const MPI_Count* sendcounts, const MPI_Aint* sdispls,
                  Datatype* sendtype, void* recvbuf, const MPI_Count* recvcounts,
                  const MPI_Aint* rdispls, Datatype* recvtype, Comm& comm) {
    return blocking(comm, plan_alltoall(listed(sendbuf, sendcounts, sdispls, sendtype, comm),
                                        listed(recvbuf, recvcounts, rdispls, recvtype, comm),
                                        sendbuf == MPI_IN_PLACE, comm));
}
Status ialltoallv(const void* sendbuf, const MPI_Count* sendcounts, const MPI_Aint* sdispls,
                  Datatype* sendtype, void* recvbuf, const MPI_Count* recvcounts,
                  const MPI_Aint* rdispls, Datatype* recvtype, Comm& comm, MPI_Request* request) {
    return nonblocking(comm,
                       plan_alltoall(listed(sendbuf, sendcounts, sdispls, sendtype, comm),
                                     listed(recvbuf, recvcounts, rdispls, recvtype, comm),
                                     sendbuf == MPI_IN_PLACE, comm),
                       {sendtype, recvtype}, request);
}
Status alltoallv_init(const void* sendbuf, const MPI_Count* sendcounts, const MPI_Aint* sdispls,
                      Datatype* sendtype, void* recvbuf, const MPI_Count* recvcounts,
                      const MPI_Aint* rdispls, Datatype* recvtype, Comm& comm, Info*,
                      MPI_Request* request) {
    return persistent(comm,
                      plan_alltoall(listed(sendbuf, sendcounts, sdispls, sendtype, comm),
                                    listed(recvbuf, recvcounts, rdispls, recvtype, comm),
                                    sendbuf == MPI_IN_PLACE, comm),
                      {sendtype, recvtype}, request);
}

Pending alltoallw(const void* sendbuf, const MPI_Count* sendcounts, const MPI_Aint* sdispls,
                  const MPI_Datatype* sendtypes, void* recvbuf, const MPI_Count* recvcounts,
                  const MPI_Aint* rdispls, const MPI_Datatype* recvtypes, Comm& comm) {
    return blocking(comm, plan_alltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf,
                                         recvcounts, rdispls, recvtypes, comm));
}
Status ialltoallw(const void* sendbuf, const MPI_Count* sendcounts, const MPI_Aint* sdispls,
                  const MPI_Datatype* sendtypes, void* recvbuf, const MPI_Count* recvcounts,
                  const MPI_Aint* rdispls, const MPI_Datatype* recvtypes, Comm& comm,
                  MPI_Request* request) {
    return nonblocking(comm,
                       plan_alltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts,
                                      rdispls, recvtypes, comm),
                       types_of(sendbuf, sendtypes, recvtypes, comm), request);
}
Status alltoallw_init(const void* sendbuf, const MPI_Count* sendcounts, const MPI_Aint* sdispls,
                      const MPI_Datatype* sendtypes, void* recvbuf, const MPI_Count* recvcounts,
                      const MPI_Aint* rdispls, const MPI_Datatype* recvtypes, Comm& comm, Info*,
                      MPI_Request* request) {
    return persistent(comm,
                      plan_alltoallw(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts,
                                     rdispls, recvtypes, comm),
                      types_of(sendbuf, sendtypes, recvtypes, comm), request);
}

}  // namespace gantry::mpi
