// SPDX-License-Identifier: BSD-3-Clause
//
// Making and freeing communicators. Everything that communicates is a task on the old
// communicator's collective context; the new handle is written when it ends. Attribute callbacks
// run before, outside progress().
#include "coll/barrier.hpp"
#include "coll/gather.hpp"
#include "transfer/buffer.hpp"
#include "mpi/bodies.hpp"
#include "mpi/coll/collective_call.hpp"
#include "mpi/comm/among.hpp"
#include "mpi/comm/context.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/faults/faults.hpp"

#include <algorithm>
#include <memory>
#include <unordered_set>

namespace gantry::mpi {
namespace {

Status no_memory() {
    return failure(MPI_ERR_NO_MEM, "out of memory for a communicator");
}

// The new communicator of a duplicate, made before anything is sent; it gets its context when the
// members have agreed. Hints of the old one are not its own (MPI 5.0 section 7.4.2): an assertion
// that one communicator keeps need not hold for another.
Result<Comm*> prepare_duplicate(Comm& comm, const Info* hints) {
    Comm* made = comm.is_inter()
                     ? make_intercomm(*comm.engine, 0, comm.members(), comm.group.peers,
                                      comm.rank(), comm.errhandler)
                     : make_comm(*comm.engine, 0, comm.group.peers, comm.rank(), comm.errhandler);
    if (made == nullptr) return no_memory();
    made->topology = comm.topology;
    made->session_buffer = comm.session_buffer;
    Status copied = comm.attributes.copy_to(comm.handle, made->attributes);
    if (!copied.ok()) {
        release(made);
        return copied;
    }
    if (hints != nullptr) take_hints(made->hints, hints->pairs);
    return made;
}

void set_context(Comm& comm, std::uint32_t context) {
    comm.group.context = context;
    comm.collective.context = context | p2p::kCollectiveContext;
    end_if_revoked(comm);
}

Task<Status> duplicate(Executor& executor, Comm* old, coll::Team team, std::shared_ptr<Comm> made,
                       MPI_Comm* newcomm) {
    std::uint32_t context = 0;
    Status shared = co_await share_context(executor, *old->engine, team, &context);
    GANTRY_CO_TRY(shared);
    set_context(*made, context);
    *newcomm = retain(made.get())->handle;
    co_return success();
}

Result<CollectiveCall> duplication(Comm& comm, const Info* hints, MPI_Comm* newcomm) {
    Result<Comm*> prepared = prepare_duplicate(comm, hints);
    if (!prepared.ok()) return std::move(prepared).status();
    // Released here unless the operation ends well.
    const std::shared_ptr<Comm> made(*prepared, [](Comm* unused) { release(unused); });
    CollectiveCall call{[old = &comm, made, newcomm](coll::Team team) {
        return duplicate(team.executor(), old, team, made, newcomm);
    }};
    call.agreement = Agreement(comm, "MPI_Comm_dup");
    return call;
}

// What each rank says about itself in a split: also which context its new communicator has if it is
// the first there.
struct Share {
    int color, key;
    std::uint32_t context;
};

// The world ranks of those in a part of the old communicator who have my color, by key and rank.
std::vector<int> with_my_color(const Comm& old, const std::vector<Share>& all, coll::Team part) {
    std::vector<int> members;
    const int color = all[static_cast<std::size_t>(old.collective.rank)].color;
    const auto share_of = [&all](int place) { return all[static_cast<std::size_t>(place)]; };
    for (int rank = 0; rank < part.size(); ++rank)
        if (share_of(part.in_group(rank)).color == color) members.push_back(part.in_group(rank));
    std::stable_sort(members.begin(), members.end(),
                     [&share_of](int a, int b) { return share_of(a).key < share_of(b).key; });
    for (int& member : members)
        member = old.collective.peer(member);
    return members;
}

// None for who has no color, nor where nobody of the remote group has it.
Status make_part(Comm& old, coll::Team team, const std::vector<Share>& all, MPI_Comm* newcomm) {
    *newcomm = MPI_COMM_NULL;
    const Share& mine = all[static_cast<std::size_t>(old.collective.rank)];
    if (mine.color == MPI_UNDEFINED) return success();
    const auto first = std::find_if(
        all.begin(), all.end(), [&mine](const Share& share) { return share.color == mine.color; });
    std::vector<int> members, others;
    if (old.is_inter()) {
        const coll::Sides sides(team);
        members = with_my_color(old, all, sides.mine);
        others = with_my_color(old, all, sides.theirs);
        if (others.empty()) return success();
    } else {
        members = with_my_color(old, all, team);
    }
    const int rank = static_cast<int>(
        std::find(members.begin(), members.end(), old.engine->rank()) - members.begin());
    Comm* made = old.is_inter() ? make_intercomm(*old.engine, first->context, std::move(members),
                                                 std::move(others), rank, old.errhandler)
                                : make_comm(*old.engine, first->context, std::move(members), rank,
                                            old.errhandler);
    if (made == nullptr) return no_memory();
    made->session_buffer = old.session_buffer;
    *newcomm = made->handle;
    return success();
}

// Where members of several jobs are in a part, its context is no member's own.
Task<Status> agree_on_parts(Executor& executor, Comm* old, coll::Team team,
                            std::vector<Share>* all) {
    const int color = (*all)[static_cast<std::size_t>(old->collective.rank)].color;
    std::vector<int> members;
    int me = 0;
    for (int place = 0; place < old->collective.size(); ++place) {
        if ((*all)[static_cast<std::size_t>(place)].color != color) continue;
        if (place == old->collective.rank) me = static_cast<int>(members.size());
        members.push_back(old->collective.peer(place));
    }
    const std::shared_ptr<p2p::Group> group = agreement_group(*old, std::move(members), me);
    const coll::Team agreeing{&old->engine->messenger(), &old->engine->transfer(), group.get(),
                              team.tag};
    std::uint32_t context = 0;
    Status shared = co_await share_context(executor, *old->engine, agreeing, &context);
    GANTRY_CO_TRY(shared);
    for (Share& share : *all)
        if (share.color == color) share.context = context;
    co_return success();
}

Task<Status> split(Executor& executor, Comm* old, coll::Team team, Share mine, MPI_Comm* newcomm) {
    std::vector<Share> all(static_cast<std::size_t>(team.size()));
    const p2p::Buffer send = transfer::bytes_buffer(&mine, sizeof mine);
    coll::Blocks blocks;
    blocks.address = all.data();
    blocks.count = sizeof mine;
    blocks.layout = send.layout;
    Status gathered = co_await coll::allgather(executor, team, send, std::move(blocks), false);
    GANTRY_CO_TRY(gathered);
    if (mine.color != MPI_UNDEFINED && old->engine->outsiders().among(old->collective.peers)) {
        Status agreed = co_await agree_on_parts(executor, old, team, &all);
        GANTRY_CO_TRY(agreed);
    }
    co_return make_part(*old, team, all, newcomm);
}

Pending split_by(Comm& comm, const char* function, int color, int key, MPI_Comm* newcomm) {
    Result<std::uint32_t> context = comm.engine->new_context();
    if (!context.ok()) return std::move(context).status();
    const auto make = [&comm, mine = Share{color, key, *context}, newcomm](const coll::Team& team) {
        return split(team.executor(), &comm, team, mine, newcomm);
    };
    return Pending(*comm.engine, run_behind(Agreement(comm, function), comm.team(), make));
}

Status check_members(const Comm& comm, const Group& group) {
    const std::vector<int> members = comm.members();
    const std::unordered_set<int> peers(members.begin(), members.end());
    for (int peer : group.peers)
        if (!peers.contains(peer))
            return failure(
                MPI_ERR_GROUP,
                "the group names process {} of the job, which is not in the communicator{}", peer,
                comm.is_inter() ? "'s local group" : "");
    return success();
}

}  // namespace

Result<CollectiveCall> comm_dup(Comm& comm, MPI_Comm* newcomm) {
    return duplication(comm, nullptr, newcomm);
}

Result<CollectiveCall> comm_dup_with_info(Comm& comm, Info* info, MPI_Comm* newcomm) {
    return duplication(comm, info, newcomm);
}

Pending comm_split(Comm& comm, int color, int key, MPI_Comm* newcomm) {
    return split_by(comm, "MPI_Comm_split", color, key, newcomm);
}

Pending comm_split_type(Comm& comm, int split_type, int key, Info* info, MPI_Comm* newcomm) {
    int color = MPI_UNDEFINED;
    const int node = comm.engine->outsiders().node(comm.engine->rank());
    switch (split_type) {
        case MPI_UNDEFINED: break;
        case MPI_COMM_TYPE_SHARED: color = node; break;
        case MPI_COMM_TYPE_HW_GUIDED:
        case MPI_COMM_TYPE_RESOURCE_GUIDED: {
            const std::string* wanted =
                info != nullptr ? value_of(info->pairs, "mpi_hw_resource_type") : nullptr;
            // Everybody on a node shares its memory; other resources are not distinguished, so they
            // give no communicator.
            if (wanted != nullptr && *wanted == "mpi_shared_memory") color = node;
            break;
        }
        case MPI_COMM_TYPE_HW_UNGUIDED: break;
        default:
            return failure(MPI_ERR_ARG, "split type {} is none of MPI_COMM_TYPE_*", split_type);
    }
    return split_by(comm, "MPI_Comm_split_type", color, key, newcomm);
}

Pending comm_create(Comm& comm, Group& group, MPI_Comm* newcomm) {
    // Of an inter-communicator everybody takes part: a split into who is in a group and who is not.
    if (comm.is_inter()) {
        GANTRY_TRY(check_members(comm, group));
        return split_by(comm, "MPI_Comm_create", group.rank != MPI_UNDEFINED ? 0 : MPI_UNDEFINED,
                        group.rank, newcomm);
    }
    // Also on ranks outside, and where the call fails: everybody's next collective has the next tag.
    const coll::Team everybody = comm.team();
    GANTRY_TRY(check_members(comm, group));
    return make_agreed(comm, Agreement(comm, "MPI_Comm_create"), {group.peers, group.rank},
                       everybody, nullptr, newcomm);
}

Pending comm_create_group(Comm& comm, Group& group, int tag, MPI_Comm* newcomm) {
    GANTRY_TRY(check_members(comm, group));
    return make_among(comm, {group.peers, group.rank}, agreement_tag(tag), nullptr, newcomm);
}

Pending comm_free(MPI_Comm* comm) {
    Comm* object = find(*comm);
    if (object->predefined)
        return failure(MPI_ERR_COMM, "{} is predefined and cannot be freed", object->name);
    GANTRY_TRY(object->attributes.remove_all(object->handle));
    if (find(*comm) != object)
        return failure(MPI_ERR_COMM, "another thread has freed this communicator meanwhile");
    // What is in flight on it goes on; only the handle ends here.
    release(take_handle(object));
    *comm = MPI_COMM_NULL;
    return success();
}

namespace {

// Behind the barrier nobody of the communicator begins anything with it any more.
Task<Status> part(Executor& executor, Comm* comm, coll::Team team, MPI_Comm* handle) {
    Engine& engine = *comm->engine;
    engine.outsiders().prepare_to_part(comm->collective.peers);
    Status met = co_await coll::barrier(executor, team);
    GANTRY_CO_TRY(met);
    release(take_handle(comm));
    *handle = MPI_COMM_NULL;
    Status closed = co_await engine.outsiders().close_unused(executor);
    co_return closed;
}

}  // namespace

Pending comm_disconnect(MPI_Comm* comm) {
    Comm* object = find(*comm);
    Engine& engine = *object->engine;
    if (object->predefined || !engine.outsiders().any()) return comm_free(comm);
    GANTRY_TRY(object->attributes.remove_all(object->handle));
    if (find(*comm) != object)
        return failure(MPI_ERR_COMM, "another thread has freed this communicator meanwhile");
    const coll::Team team = object->team();
    return Pending(engine, part(engine.executor(), object, team, comm));
}

}  // namespace gantry::mpi
