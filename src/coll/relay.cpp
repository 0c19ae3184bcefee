// SPDX-License-Identifier: BSD-3-Clause
#include "coll/relay.hpp"

#include "coll/host_image.hpp"
#include "transfer/context.hpp"

namespace gantry::coll {
namespace {

bool is_far(const Team& team, int rank) {
    transfer::Context& context = *team.context;
    const int peer = team.group->peer(team.in_group(rank));
    return peer != context.world_rank && !context.endpoints.to(peer).facts.shared_memory;
}

}  // namespace

Relay::Relay(Executor& executor, const Team& team, const p2p::Buffer& like, int from, int to,
             Bytes piece, int slots)
    : team_(team) {
    transfer::Context& context = *team.context;
    if (!context.device.active() || piece == 0 || !is_far(team, from) || !is_far(team, to) ||
        on_host(team, like))
        return;
    Result<transfer::SlotPool*> pool = context.pools.own(transport::Pool::device_slots);
    if (!pool.ok() || piece > (*pool)->largest()) return;
    pool_ = *pool;
    for (int i = 0; i < slots; ++i) {
        auto slot = std::make_unique<Slot>(executor);
        slot->memory = pool_->try_acquire(piece, transfer::SlotUse::ahead);
        const bool got = slot->memory.units > 0;
        if (got) slots_.push_back(std::move(slot));
        if (got) continue;
        for (const std::unique_ptr<Slot>& each : slots_)
            pool_->release(each->memory);
        slots_.clear();
        return;
    }
}

Relay::~Relay() {
    for (const std::unique_ptr<Slot>& each : slots_)
        pool_->release(each->memory);
}

Task<Status> Relay::ready(Executor& executor, std::uint64_t index) {
    return slot_of(index).copies.join(executor);
}

p2p::Buffer Relay::slot(std::uint64_t index, Bytes bytes) const {
    return transfer::bytes_buffer(slot_of(index).memory.memory, bytes);
}

void Relay::place(Executor& executor, std::uint64_t index, const p2p::Buffer& block) {
    Slot& slot = slot_of(index);
    slot.copies.spawn(
        copy(executor, team_, transfer::bytes_buffer(slot.memory.memory, block.bytes()), block));
}

Task<Status> Relay::all(Executor& executor) {
    FirstFailure failed;
    for (const std::unique_ptr<Slot>& each : slots_) {
        Status copied = co_await each->copies.join(executor);
        failed.note(std::move(copied));
    }
    co_return failed.status();
}

}  // namespace gantry::coll
