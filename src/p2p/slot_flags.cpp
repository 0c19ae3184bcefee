// SPDX-License-Identifier: BSD-3-Clause
#include "p2p/slot_flags.hpp"

#include "base/log.hpp"
#include "p2p/core.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

namespace gantry::p2p {

void raise(SlotFlag& flag, std::uint32_t number) {
    const std::atomic_ref word(flag.number);
    const std::uint32_t now = word.load(std::memory_order_relaxed);
    // Further than `number` it goes only when the device has written that.
    if (static_cast<std::int32_t>(now - number) < 0) word.store(number, std::memory_order_release);
}

std::optional<AwaitedFlags::Awaited> AwaitedFlags::next_raised() {
    const auto raised = std::ranges::find_if(awaited_, [](const Awaited& each) {
        return std::atomic_ref(const_cast<std::uint32_t&>(each.flag->number))
                   .load(std::memory_order_acquire) == each.number;
    });
    if (raised == awaited_.end()) return std::nullopt;
    const Awaited found = *raised;
    awaited_.erase(raised);
    return found;
}

void AwaitedFlags::drop(int from, std::uint64_t send_id) {
    std::erase_if(awaited_, [&](const Awaited& each) {
        return each.from == from && each.chunk.send_id == send_id;
    });
}

void AwaitedFlags::drop(int from) {
    std::erase_if(awaited_, [&](const Awaited& each) { return each.from == from; });
}

void Core::name_slot(Outgoing& message) {
    const Peer& to = peer(message.peer);
    const plan::Plan& offer = message.choice.plan;
    const bool one_piece = offer.protocol == plan::Protocol::pipeline && offer.ahead > 0 &&
                           offer.chunk >= message.bytes && message.bytes > 0;
    if (!one_piece || !to.facts.shared_memory || to.facts.self || !message.location.on_device() ||
        !message.buffer.contiguous() || executor.hands_over())
        return;
    Result<SlotPool*> slots = pool(transport::Pool::device_slots);  // makes our segment
    SlotFlag* const flags = slots.ok() ? to.transport->slot_flags(world_rank_) : nullptr;
    if (flags == nullptr) return;
    if (!std::exchange(flags_pinned_, true)) {
        Status pinned = device.pin(flags, kSlotFlags * sizeof(SlotFlag));
        if (!pinned.ok()) log::warn("ends of copies are told by the processor: {}", pinned.text());
    }
    const Slot slot = (*slots)->try_acquire(message.bytes, SlotUse::ahead);
    if (slot.units == 0) return;
    const std::uint32_t number = slot_flags_.next(slot.unit);
    if (number == 0) return (*slots)->release(slot);
    message.flagged = {slot, &flags[slot.unit], number};
}

Status Core::tell_by_flag(Outgoing& message) {
    if (message.flagged.flag == nullptr)
        return failure(MPI_ERR_OTHER, "the request to send of message {} did not leave",
                       message.id);
    const Status& lost = peer(message.peer).lost;
    if (!lost.ok()) return lost;
    const Flagged told = std::exchange(message.flagged, {});
    raise(*told.flag, told.number);
    SlotPool& slots = *pools_[static_cast<std::size_t>(transport::Pool::device_slots)];
    if (told.emptied)
        slots.release(told.slot);
    else
        slots.lend(told.slot, message.peer);
    return success();
}

void Core::on_credit(const wire::Credit& credit) {
    Outgoing* const message = outgoing(credit.send_id);
    if (message != nullptr && message->flagged.flag != nullptr) {
        message->flagged.emptied = true;  // our copy's end is still to be seen
    } else if (credit.units != 0) {
        std::optional<SlotPool>& pool = pools_[credit.pool];
        if (pool) pool->release(credit.unit, credit.units);
    }
    if (message != nullptr) message->grants.push(credit.unit);
}

void Core::take_back_slot(const Flagged& flagged, Outgoing* message) {
    if (flagged.flag == nullptr) return;
    if (message != nullptr) message->flagged.flag = nullptr;
    pools_[static_cast<std::size_t>(transport::Pool::device_slots)]->take_back(flagged.slot);
}

void Core::await_flag(int from, std::uint64_t send_id, Bytes bytes, const wire::Flagged& flagged) {
    const SlotFlag* const flags = peer(from).transport->slot_flags(from);
    if (flags == nullptr)
        return log::error("rank {} names flag {}, which cannot be seen", from, flagged.unit);
    const auto units = static_cast<std::uint32_t>(divide_up(bytes, kDeviceSlotUnit));
    const auto which = static_cast<std::uint8_t>(transport::Pool::device_slots);
    const Bytes offset = flagged.unit * kDeviceSlotUnit;
    const wire::Chunk chunk{send_id, 0, bytes, offset, flagged.unit, units, which};
    awaited_flags_.await({from, &flags[flagged.unit], flagged.number, chunk});
}

int Core::take_raised_flags() {
    int taken = 0;
    for (; const auto raised = awaited_flags_.next_raised(); ++taken)
        on_chunk(raised->from, raised->chunk);
    return taken;
}

}  // namespace gantry::p2p
