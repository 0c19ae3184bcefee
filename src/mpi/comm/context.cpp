// SPDX-License-Identifier: BSD-3-Clause
//
// See context.hpp. 2^28 ids, divided among the ranks, last for the life of a job; running out is an
// error, not a collision.
#include "mpi/comm/context.hpp"

#include "coll/bcast.hpp"
#include "coll/exchange.hpp"
#include "coll/gather_values.hpp"
#include "mpi/comm/comm.hpp"
#include "mpi/engine/engine.hpp"
#include "transfer/buffer.hpp"

#include <algorithm>
#include <functional>
#include <string_view>

namespace gantry::mpi {

Result<std::uint32_t> Engine::new_context() {
    const std::uint64_t id = kFirstContext + contexts_taken_ * static_cast<std::uint64_t>(size()) +
                             static_cast<std::uint64_t>(rank());
    if (id >= kFirstSharedContext)
        return failure(MPI_ERR_OTHER,
                       "rank {} has made {} communicators and has no context ids left for more",
                       rank(), contexts_taken_);
    ++contexts_taken_;
    return static_cast<std::uint32_t>(id);
}

bool Engine::take_shared_context(std::uint32_t context) {
    if (context < next_shared_context_ || context >= p2p::kNodesContext) return false;
    next_shared_context_ = context + 1;
    return true;
}

namespace {

// Each job has ids of its own, so members of several jobs look for one that is free for all. Who is in
// two such agreements at once may have given the id to the other: then they try again.
Task<Status> agree_on_context(Executor& executor, Engine& engine, coll::Team team,
                              std::uint32_t* context) {
    std::vector<std::uint32_t> all;
    while (true) {
        const std::uint32_t mine = engine.propose_shared_context();
        Status gathered = co_await coll::gather_values(executor, team, mine, &all);
        GANTRY_CO_TRY(gathered);
        *context = *std::ranges::max_element(all);
        if (*context >= p2p::kNodesContext)
            co_return failure(MPI_ERR_OTHER,
                              "there are no context ids left for communicators of several jobs");
        const std::uint32_t free = engine.take_shared_context(*context) ? 1 : 0;
        gathered = co_await coll::gather_values(executor, team, free, &all);
        GANTRY_CO_TRY(gathered);
        if (std::ranges::find(all, 0u) == all.end()) co_return success();
    }
}

}  // namespace

Task<Status> share_context(Executor& executor, Engine& engine, coll::Team team,
                           std::uint32_t* context) {
    if (engine.outsiders().among(team.group->peers)) {
        Status agreed = co_await agree_on_context(executor, engine, team, context);
        co_return agreed;
    }
    if (team.rank() == 0) {
        Result<std::uint32_t> taken = engine.new_context();
        // 0 is nobody's id: the others learn that there is none.
        *context = taken.ok() ? *taken : 0;
        const p2p::Buffer told = transfer::bytes_buffer(context, sizeof *context);
        Status sent = co_await coll::bcast(executor, team, told, 0);
        GANTRY_CO_TRY(taken.status());
        co_return sent;
    }
    const p2p::Buffer heard = transfer::bytes_buffer(context, sizeof *context);
    Status received = co_await coll::bcast(executor, team, heard, 0);
    GANTRY_CO_TRY(received);
    if (*context == 0)
        co_return failure(MPI_ERR_OTHER,
                          "the first rank of the new communicator has no context ids left");
    co_return success();
}

std::shared_ptr<p2p::Group> agreement_group(std::uint32_t context, std::vector<int> peers,
                                            int rank) {
    auto group = std::make_shared<p2p::Group>();
    group->context = context;
    group->shared_context = true;
    group->rank = rank;
    group->peers = std::move(peers);
    return group;
}

// Processes of several jobs number each other differently: there, the old communicator's ranks are what
// all of them know.
std::shared_ptr<p2p::Group> agreement_group(const Comm& old, std::vector<int> peers, int rank) {
    auto group = agreement_group(old.collective.context, std::move(peers), rank);
    if (!old.engine->outsiders().among(old.collective.peers)) return group;
    for (const int peer : group->peers) {
        const auto place = std::ranges::find(old.collective.peers, peer);
        group->numbers.push_back(static_cast<int>(place - old.collective.peers.begin()));
    }
    return group;
}

int agreement_tag(int tag) {
    return 0x4000'0000 | (tag & 0x3fff'ffff);
}

int agreement_tag(const char* stringtag) {
    const std::size_t hash = std::hash<std::string_view>{}(stringtag);
    return agreement_tag(static_cast<int>(hash & 0x3fff'ffff));
}

}  // namespace gantry::mpi
