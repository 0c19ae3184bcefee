// SPDX-License-Identifier: BSD-3-Clause
//
// See context.hpp. 2^29 ids, divided among the ranks, last for the life of a job; running out is an
// error, not a collision.
#include "mpi/comm/context.hpp"

#include "coll/bcast.hpp"
#include "transfer/buffer.hpp"
#include "mpi/engine/engine.hpp"

#include <functional>
#include <string_view>

namespace gantry::mpi {

Result<std::uint32_t> Engine::new_context() {
    const std::uint64_t id = kFirstContext + contexts_taken_ * static_cast<std::uint64_t>(size()) +
                             static_cast<std::uint64_t>(rank());
    if (id >= p2p::kNodesContext)
        return failure(MPI_ERR_OTHER,
                       "rank {} has made {} communicators and has no context ids left for more",
                       rank(), contexts_taken_);
    ++contexts_taken_;
    return static_cast<std::uint32_t>(id);
}

Task<Status> share_context(Executor& executor, Engine& engine, coll::Team team,
                           std::uint32_t* context) {
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

int agreement_tag(int tag) {
    return 0x4000'0000 | (tag & 0x3fff'ffff);
}

int agreement_tag(const char* stringtag) {
    const std::size_t hash = std::hash<std::string_view>{}(stringtag);
    return agreement_tag(static_cast<int>(hash & 0x3fff'ffff));
}

}  // namespace gantry::mpi
