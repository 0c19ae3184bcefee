// SPDX-License-Identifier: BSD-3-Clause
//
// Making inter-communicators of two groups.
//
// The two leaders exchange what each knows, its group and a context id, and each tells its own
// group; the id of the group that goes first is taken. A leader that fails tells its group, too:
// nobody of it waits for a communicator that does not come.
#include "mpi/comm/comm.hpp"

#include "coll/bcast.hpp"
#include "coll/exchange.hpp"
#include "mpi/bodies.hpp"
#include "mpi/comm/context.hpp"
#include "mpi/dynamic/handshake.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"

#include <memory>
#include <unordered_set>

namespace gantry::mpi {
namespace {

// What a leader tells the other one, and later its group.
struct Introduction {
    std::int32_t members = 0;   // of the group
    std::uint32_t context = 0;  // 0: there is none
    // Processes of several jobs are in the groups: they meet (dynamic/handshake.hpp).
    std::int32_t several_jobs = 0;
};

// The way between the leaders: a group of these two. Nobody else has one.
struct Leaders {
    std::shared_ptr<p2p::Group> group;
    int tag = 0;
};

// What all of one group need to make the communicator.
struct Making {
    Engine* engine = nullptr;
    coll::Team local;  // my group; its tags are the operation's own
    int leader = 0;    // in my group
    std::vector<int> mine;
    Errhandler* errhandler = nullptr;
    InfoPairs hints;
    std::shared_ptr<SendBuffer> session_buffer;  // of where the local group comes from
    std::shared_ptr<p2p::Group> local_group;     // where no communicator holds it for `local`
};

Status same_process(int peer) {
    return failure(
        MPI_ERR_COMM,
        "process {} of the job is in both groups; those of an inter-communicator have no "
        "process in common",
        peer);
}

Status check_disjoint(const std::vector<int>& mine, const std::vector<int>& theirs) {
    const std::unordered_set<int> known(mine.begin(), mine.end());
    for (int peer : theirs)
        if (known.contains(peer)) return same_process(peer);
    return success();
}

// Between the leaders. `theirs` and `context` are set when it ends well, or `several_jobs` alone.
Task<Status> meet_leader(Executor& executor, Engine& engine, Leaders bridge,
                         const std::vector<int>& mine, std::vector<int>* theirs,
                         Introduction* agreed) {
    Result<std::uint32_t> taken = engine.new_context();
    const Outsiders& outsiders = engine.outsiders();
    const bool several = outsiders.among(mine) || outsiders.among(bridge.group->peers);
    const Introduction me{static_cast<std::int32_t>(mine.size()), taken.ok() ? *taken : 0,
                          several ? 1 : 0};
    Introduction other;
    const coll::Team leaders{&engine.messenger(), &engine.transfer(), bridge.group.get(),
                             bridge.tag};
    const p2p::Buffer told = transfer::bytes_buffer(&me, sizeof me),
                      heard = transfer::bytes_buffer(&other, sizeof other);
    Status met = co_await coll::exchange(executor, leaders, told, 1, heard, 1);
    GANTRY_CO_TRY(met);
    if (me.several_jobs != 0 || other.several_jobs != 0) {
        agreed->several_jobs = 1;
        co_return success();
    }
    theirs->resize(static_cast<std::size_t>(other.members));
    const p2p::Buffer mine_told = transfer::bytes_buffer(mine.data(), mine.size() * sizeof(int)),
                      theirs_heard =
                          transfer::bytes_buffer(theirs->data(), theirs->size() * sizeof(int));
    met = co_await coll::exchange(executor, leaders, mine_told, 1, theirs_heard, 1);
    GANTRY_CO_TRY(met);
    if (me.context == 0 || other.context == 0)
        co_return failure(MPI_ERR_OTHER,
                          "a leader has no context ids left for an inter-communicator");
    Status disjoint = check_disjoint(mine, *theirs);
    GANTRY_CO_TRY(disjoint);
    agreed->members = other.members;
    agreed->context = goes_first(engine, mine, *theirs) ? me.context : other.context;
    co_return success();
}

// The groups find out who they are, and become connected where they are not yet.
Task<Status> meet_as_strangers(Executor& executor, Making* making, Leaders bridge,
                               std::vector<int>* theirs, Introduction* agreed) {
    MessageBridge leaders(*making->engine, bridge.group, bridge.tag);
    Handshake handshake;
    handshake.engine = making->engine;
    handshake.local = making->local;
    handshake.leader = making->leader;
    handshake.bridge = &leaders;
    Met met;
    Status done = co_await meet(executor, &handshake, &met);
    GANTRY_CO_TRY(done);
    *theirs = std::move(met.theirs);
    agreed->context = met.context;
    co_return success();
}

// `judged` is what the leader already knows against its arguments.
Task<Status> make_of_groups(Executor& executor, Making making, Leaders bridge, Status judged,
                            MPI_Comm* newcomm) {
    const bool is_leader = making.local.rank() == making.leader;
    std::vector<int> theirs;
    Introduction other;
    Status met = judged;
    if (is_leader && met.ok())
        met = co_await meet_leader(executor, *making.engine, bridge, making.mine, &theirs, &other);
    const p2p::Buffer head = transfer::bytes_buffer(&other, sizeof other);
    Status told = co_await coll::bcast(executor, making.local, head, making.leader);
    GANTRY_CO_TRY(met);
    GANTRY_CO_TRY(told);
    if (other.several_jobs != 0) {
        met = co_await meet_as_strangers(executor, &making, bridge, &theirs, &other);
        GANTRY_CO_TRY(met);
    } else if (other.context == 0) {
        co_return failure(MPI_ERR_COMM,
                          "the leader of this group, its rank {}, could not agree with the other "
                          "leader; what it reports says why",
                          making.leader);
    } else {
        theirs.resize(static_cast<std::size_t>(other.members));
        const p2p::Buffer list = transfer::bytes_buffer(theirs.data(), theirs.size() * sizeof(int));
        told = co_await coll::bcast(executor, making.local, list, making.leader);
        GANTRY_CO_TRY(told);
    }
    Comm* made = make_intercomm(*making.engine, other.context, std::move(making.mine),
                                std::move(theirs), making.local.rank(), making.errhandler);
    if (made == nullptr)
        co_return failure(MPI_ERR_NO_MEM, "out of memory for an inter-communicator");
    take_hints(made->hints, making.hints);
    made->session_buffer = std::move(making.session_buffer);
    *newcomm = made->handle;
    co_return success();
}

Status check_leader(const char* name, int leader, int members) {
    if (leader >= 0 && leader < members) return success();
    return failure(MPI_ERR_RANK, "argument {} is {} and must lie between 0 and {}", name, leader,
                   members - 1);
}

// What the leader's arguments about the other group must be.
Status check_peer(const Comm* peer_comm, int remote_leader) {
    if (peer_comm == nullptr)
        return failure(
            MPI_ERR_COMM,
            "argument peer_comm is no live communicator on the local leader, who reaches "
            "the other leader by it");
    GANTRY_TRY(check_leader("remote_leader", remote_leader, peer_comm->peers()));
    if (!peer_comm->is_inter() && remote_leader == peer_comm->rank())
        return failure(MPI_ERR_RANK,
                       "argument remote_leader is {}, this process itself; the other group has a "
                       "leader of its own",
                       remote_leader);
    return success();
}

Status check_remote_group(const Group& local_group, const Group* remote_group, int remote_leader) {
    if (remote_group == nullptr)
        return failure(MPI_ERR_GROUP, "argument remote_group is no live group on the local leader");
    GANTRY_TRY(check_leader("remote_leader", remote_leader, remote_group->size()));
    return check_disjoint(local_group.peers, remote_group->peers);
}

}  // namespace

Pending intercomm_create(Comm& local_comm, int local_leader, Comm* peer_comm, int remote_leader,
                         int tag, MPI_Comm* newintercomm) {
    *newintercomm = MPI_COMM_NULL;
    GANTRY_TRY(check_leader("local_leader", local_leader, local_comm.size()));
    Making making;
    making.engine = local_comm.engine;
    making.local = local_comm.team();
    making.leader = local_leader;
    making.mine = local_comm.group.peers;
    making.errhandler = local_comm.errhandler;
    making.session_buffer = local_comm.session_buffer;
    Leaders bridge;
    Status judged;
    if (local_comm.rank() == local_leader) {
        judged = check_peer(peer_comm, remote_leader);
        if (judged.ok()) {
            bridge = {
                agreement_group(*peer_comm,
                                {making.engine->rank(), peer_comm->group.peer(remote_leader)}, 0),
                agreement_tag(tag)};
        }
    }
    Engine& engine = *making.engine;
    return Pending(engine, make_of_groups(engine.executor(), std::move(making), bridge,
                                          std::move(judged), newintercomm));
}

Pending intercomm_create_from_groups(Group& local_group, int local_leader, Group* remote_group,
                                     int remote_leader, const char* stringtag, Info* info,
                                     Errhandler& errhandler, MPI_Comm* newintercomm) {
    *newintercomm = MPI_COMM_NULL;
    if (local_group.peers.empty()) return success();
    if (local_group.rank == MPI_UNDEFINED)
        return failure(
            MPI_ERR_GROUP,
            "this process is not in local_group, of which it makes an inter-communicator");
    GANTRY_TRY(check_leader("local_leader", local_leader, local_group.size()));
    Engine& engine = *process().engine;
    Making making;
    making.engine = &engine;
    constexpr std::uint32_t context = kEngineContext | p2p::kCollectiveContext;
    making.local_group = agreement_group(context, local_group.peers, local_group.rank);
    making.local = {&engine.messenger(), &engine.transfer(), making.local_group.get(),
                    agreement_tag(stringtag)};
    making.leader = local_leader;
    making.mine = local_group.peers;
    making.errhandler = &errhandler;
    making.session_buffer = local_group.session_buffer;
    if (info != nullptr) making.hints = info->pairs;
    Leaders bridge;
    Status judged;
    if (local_group.rank == local_leader) {
        judged = check_remote_group(local_group, remote_group, remote_leader);
        if (judged.ok()) {
            const int other = remote_group->peers[static_cast<std::size_t>(remote_leader)];
            bridge = {agreement_group(context, {engine.rank(), other}, 0), making.local.tag};
        }
    }
    return Pending(engine, make_of_groups(engine.executor(), std::move(making), bridge,
                                          std::move(judged), newintercomm));
}

}  // namespace gantry::mpi
