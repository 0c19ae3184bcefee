// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/comm/among.hpp"

#include "mpi/comm/context.hpp"
#include "mpi/engine/engine.hpp"

#include <memory>

namespace gantry::mpi {
namespace {

// Keeps the group alive that the team refers to.
Task<Status> agree(Executor& executor, Comm* old, std::shared_ptr<p2p::Group> group, int tag,
                   std::shared_ptr<const Topology> topology, MPI_Comm* newcomm) {
    const coll::Team team{&old->engine->messenger(), &old->engine->transfer(), group.get(), tag};
    Members members{group->peers, group->rank};
    Status made =
        co_await make_member(executor, old, team, std::move(members), std::move(topology), newcomm);
    co_return made;
}

Task<Status> make_nothing(Executor&) {
    co_return success();
}

}  // namespace

Pending make_agreed(Comm& old, const Agreement& said, Members members, const coll::Team& everybody,
                    std::shared_ptr<const Topology> topology, MPI_Comm* newcomm) {
    if (said.is_empty()) [[likely]]
        return make_among(old, std::move(members), everybody.tag, std::move(topology), newcomm);
    *newcomm = MPI_COMM_NULL;
    const auto make = [&old, members = std::move(members), topology = std::move(topology),
                       newcomm](const coll::Team& team) {
        if (members.rank == MPI_UNDEFINED) return make_nothing(team.executor());
        std::shared_ptr<p2p::Group> group = agreement_group(old, members.peers, members.rank);
        return agree(team.executor(), &old, std::move(group), team.tag, topology, newcomm);
    };
    return Pending(*old.engine, run_behind(said, everybody, make));
}

Task<Status> make_member(Executor& executor, Comm* old, coll::Team team, Members members,
                         std::shared_ptr<const Topology> topology, MPI_Comm* newcomm) {
    Engine& engine = *old->engine;
    const int size = team.size();
    std::uint32_t context = 0;
    Status shared = co_await share_context(executor, engine, team, &context);
    GANTRY_CO_TRY(shared);
    Comm* made =
        make_comm(engine, context, std::move(members.peers), members.rank, old->errhandler);
    if (made == nullptr)
        co_return failure(MPI_ERR_NO_MEM, "out of memory for a communicator of {} processes", size);
    made->topology = std::move(topology);
    made->session_buffer = old->session_buffer;
    *newcomm = made->handle;
    co_return success();
}

Pending make_among(Comm& old, Members members, int tag, std::shared_ptr<const Topology> topology,
                   MPI_Comm* newcomm) {
    *newcomm = MPI_COMM_NULL;
    if (members.rank == MPI_UNDEFINED) return success();
    std::shared_ptr<p2p::Group> group =
        agreement_group(old, std::move(members.peers), members.rank);
    return Pending(*old.engine, agree(old.engine->executor(), &old, std::move(group), tag,
                                      std::move(topology), newcomm));
}

}  // namespace gantry::mpi
