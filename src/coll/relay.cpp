// SPDX-License-Identifier: BSD-3-Clause
#include "coll/relay.hpp"

#include "coll/host_image.hpp"
#include "coll/staged_vector.hpp"
#include "transfer/context.hpp"

namespace gantry::coll {

Relay::Relay(Executor& executor, const Team& team, const p2p::Buffer& like, int from, int to,
             Bytes piece, int slots)
    : team_(team) {
    transfer::Context& context = *team.context;
    if (!context.device.active() || piece == 0 || !is_staged_to(team, from) ||
        !is_staged_to(team, to) || on_host(team, like))
        return;
    for (int i = 0; i < slots; ++i) {
        auto slot = transfer::HeldSlot::try_take(context.pools, piece, transfer::SlotUse::ahead);
        if (!slot) {
            stages_.clear();
            return;
        }
        stages_.push_back(std::make_unique<transfer::Stage>(executor, std::move(slot)));
    }
}

Task<Status> Relay::ready(Executor& executor, std::uint64_t index) {
    return stage_of(index).copies.join(executor);
}

p2p::Buffer Relay::slot(std::uint64_t index, Bytes bytes) const {
    return stage_of(index).bytes(bytes);
}

void Relay::place(Executor& executor, std::uint64_t index, const p2p::Buffer& block) {
    transfer::Stage& stage = stage_of(index);
    stage.copies.spawn(copy(executor, team_, stage.bytes(block.bytes()), block));
}

Task<Status> Relay::all(Executor& executor) {
    FirstFailure failed;
    for (const std::unique_ptr<transfer::Stage>& each : stages_) {
        Status copied = co_await each->copies.join(executor);
        failed.note(std::move(copied));
    }
    co_return failed.status();
}

}  // namespace gantry::coll
