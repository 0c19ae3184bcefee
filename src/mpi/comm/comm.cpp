// SPDX-License-Identifier: BSD-3-Clause
//
// Communicators: their life, and what can be asked of one without communication.
#include "mpi/comm/comm.hpp"

#include "mpi/bodies.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/engine/text.hpp"
#include "mpi/faults/faults.hpp"

#include <algorithm>
#include <new>
#include <unordered_set>

namespace gantry::mpi {

namespace {

Status not_inter() {
    return failure(MPI_ERR_COMM,
                   "the communicator has one group; remote groups belong to inter-communicators");
}

// How two groups compare: MPI_CONGRUENT, MPI_SIMILAR or MPI_UNEQUAL, from alike to unlike.
int likeness(const std::vector<int>& a, const std::vector<int>& b) {
    static_assert(MPI_CONGRUENT < MPI_SIMILAR && MPI_SIMILAR < MPI_UNEQUAL);
    if (a == b) return MPI_CONGRUENT;
    if (a.size() != b.size()) return MPI_UNEQUAL;
    const std::unordered_set<int> members(a.begin(), a.end());
    const bool same =
        std::all_of(b.begin(), b.end(), [&](int peer) { return members.contains(peer); });
    return same ? MPI_SIMILAR : MPI_UNEQUAL;
}

}  // namespace

// With members of several jobs by what all of them know alike.
static void plan_collectives(Comm& comm) {
    Engine& engine = *comm.engine;
    comm.planner = coll::Planner(engine.outsiders().among(comm.collective.peers)
                                     ? &engine.collectives_between_jobs()
                                     : &engine.collectives());
}

Comm* make_comm(Engine& engine, std::uint32_t context, std::vector<int> peers, int rank,
                Errhandler* errhandler) {
    Comm* comm = create(process().comms);
    if (comm == nullptr) return nullptr;
    comm->engine = &engine;
    comm->group.context = context;
    comm->group.rank = rank;
    comm->group.peers = std::move(peers);
    comm->group.traffic = &comm->traffic;
    comm->collective = comm->group;
    comm->collective.context |= p2p::kCollectiveContext;
    plan_collectives(*comm);
    engine.outsiders().use(comm->group.peers);
    comm->errhandler = retain(errhandler);
    set_pair(comm->hints, kMemoryKindsKey, kMemoryKinds);
    end_if_revoked(*comm);
    return comm;
}

bool goes_first(Engine& engine, const std::vector<int>& mine, const std::vector<int>& theirs) {
    if (!engine.outsiders().any()) return mine.front() < theirs.front();
    return engine.outsiders().identity(mine.front()) < engine.outsiders().identity(theirs.front());
}

Comm* make_intercomm(Engine& engine, std::uint32_t context, std::vector<int> mine,
                     std::vector<int> theirs, int rank, Errhandler* errhandler) {
    const bool first = goes_first(engine, mine, theirs);
    engine.outsiders().use(mine);
    std::vector<int> everybody = first ? mine : theirs;
    const std::vector<int>& behind = first ? theirs : mine;
    const int border = static_cast<int>(everybody.size());
    everybody.insert(everybody.end(), behind.begin(), behind.end());
    Comm* comm = make_comm(engine, context, std::move(theirs), rank, errhandler);
    if (comm == nullptr) return nullptr;
    comm->border = border;
    comm->collective.peers = std::move(everybody);
    plan_collectives(*comm);
    comm->collective.rank = first ? rank : border + rank;
    return comm;
}

std::vector<int> Comm::members() const {
    const auto all = collective.peers.begin();
    if (!is_inter()) return collective.peers;
    return collective.rank < border ? std::vector<int>(all, all + border)
                                    : std::vector<int>(all + border, collective.peers.end());
}

void release(Comm* comm) {
    if (--comm->references > 0) return;
    if (comm->errhandler != nullptr) release(comm->errhandler);
    if (process().parent == comm) process().parent = nullptr;
    comm->engine->outsiders().let_go(comm->collective.peers);
    process().traffic_of_freed.add(comm->traffic);
    process().comms.destroy(comm);
}

// Tags wrap long before they could meet themselves. 0x4000'0000 and up belong to agreements among
// some ranks (comm_create.cpp).
coll::Team Comm::team() {
    const int tag = static_cast<int>(blocking_sequence++ & 0x1fff'ffff);
    return {&engine->messenger(), &engine->transfer(), &collective, tag, 0, -1, border, &planner};
}

coll::Team Comm::background_team() {
    const int tag = static_cast<int>((background_sequence++ & 0x1fff'ffff) | coll::kBackgroundTag);
    return {&engine->messenger(), &engine->transfer(), &collective, tag, 0, -1, border, &planner};
}

Status Comm::open_partitioned() {
    if (partitions != nullptr) return success();
    greetings.reset(new (std::nothrow) p2p::Group(group));
    partitions.reset(new (std::nothrow) p2p::Group(group));
    if (greetings == nullptr || partitions == nullptr) {
        greetings.reset();
        partitions.reset();
        return failure(MPI_ERR_NO_MEM, "out of memory for partitioned communication");
    }
    greetings->context |= p2p::kPartitionedContext;
    partitions->context |= p2p::kPartitionedContext | p2p::kCollectiveContext;
    return success();
}

Status comm_rank(Comm& comm, int* rank) {
    *rank = comm.rank();
    return success();
}

Status comm_size(Comm& comm, int* size) {
    *size = comm.size();
    return success();
}

Status comm_test_inter(Comm& comm, int* flag) {
    *flag = comm.is_inter();
    return success();
}

Status comm_remote_size(Comm& comm, int* size) {
    if (!comm.is_inter()) return not_inter();
    *size = comm.peers();
    return success();
}

Status comm_remote_group(Comm& comm, MPI_Group* group) {
    if (!comm.is_inter()) return not_inter();
    *group = make_group(comm.group.peers);
    if (*group == MPI_GROUP_NULL)
        return failure(MPI_ERR_NO_MEM, "out of memory for a group of {} processes", comm.peers());
    return success();
}

Status comm_compare(Comm& comm1, Comm& comm2, int* result) {
    if (&comm1 == &comm2)
        *result = MPI_IDENT;
    else if (comm1.is_inter() != comm2.is_inter())
        *result = MPI_UNEQUAL;
    else
        *result = std::max(likeness(comm1.members(), comm2.members()),
                           likeness(comm1.group.peers, comm2.group.peers));
    return success();
}

Status comm_group(Comm& comm, MPI_Group* group) {
    *group = make_group(comm.members(), comm.session_buffer);
    if (*group == MPI_GROUP_NULL)
        return failure(MPI_ERR_NO_MEM, "out of memory for a group of {} processes", comm.size());
    return success();
}

Status comm_set_name(Comm& comm, const char* comm_name) {
    comm.name = object_name(comm_name);
    return success();
}

Status comm_get_name(MPI_Comm comm, char* comm_name, int* resultlen) {
    const Comm* object = find(comm);
    copy_text(object != nullptr ? object->name : "MPI_COMM_NULL", comm_name, MPI_MAX_OBJECT_NAME,
              resultlen);
    return success();
}

Status comm_set_info(Comm& comm, Info* info) {
    // No hint changes what Gantry does; MPI_Comm_get_info tells those that it keeps.
    if (info == nullptr) return success();
    take_hints(comm.hints, info->pairs);
    return success();
}

Status comm_get_info(Comm& comm, MPI_Info* info_used) {
    *info_used = make_info(comm.hints);
    if (*info_used == MPI_INFO_NULL)
        return failure(MPI_ERR_NO_MEM, "out of memory for an info object");
    return success();
}

Status comm_get_parent(MPI_Comm* parent) {
    *parent = process().parent != nullptr ? process().parent->handle : MPI_COMM_NULL;
    return success();
}

}  // namespace gantry::mpi
