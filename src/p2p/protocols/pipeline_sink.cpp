// SPDX-License-Identifier: BSD-3-Clause
//
// The sink of a staged message: pieces lie in slots (the sender's, read in place, or ours, which the
// sender puts into) and are taken out in whatever order they arrive; each slot's credit goes back alone.
#include "base/yield.hpp"
#include "p2p/bar_copies.hpp"
#include "p2p/rendezvous_receive.hpp"

#include <algorithm>
#include <vector>

namespace gantry::p2p {
namespace {

constexpr int kChunksBetweenYields = 4;

// Of a piece that was taken out. Of our own slots nobody needs one more when all has come.
Status return_emptied(Receiving& receiving, const wire::Chunk& chunk) {
    const bool needed = receiving.shared || receiving.taken < receiving.accepted;
    return needed ? return_slot(receiving, chunk) : success();
}

// Takes one piece out of its slot and gives the slot back (shared: to the sender's pool; put:
// granted to this message again).
Task<Status> drain(Executor& executor, Receiving& receiving, wire::Chunk chunk, std::byte* slot,
                   transfer::HostCopy how) {
    const transfer::Staging staging = receiving.staging();
    const bool by_bar = staging.engine == plan::CopyEngine::bar &&
                        write_by_bar(receiving.context(), staging.side.location,
                                     staging.side.at(chunk.offset), {slot, chunk.bytes});
    Status status;
    if (!by_bar) {
        Completion copied(executor);
        const Nanoseconds begin = receiving.context().begins();
        transfer::copy_from_slot(receiving.context(), staging, chunk.offset, chunk.bytes, slot, how,
                                 copied);
        status = co_await copied;
        receiving.context().moved("out of a slot", begin, staging.side.location.gpu, chunk.bytes);
    }
    Status returned = return_emptied(receiving, chunk);
    if (status.ok()) status = returned;
    co_return status;
}

// Where that piece lies: in a slot of the sender's, or of ours.
Result<std::byte*> slot_of(Receiving& receiving, const wire::Chunk& chunk) {
    if (receiving.shared)
        return receiving.context().pools.slot_of(receiving.sender(),
                                                 static_cast<transport::Pool>(chunk.pool),
                                                 chunk.slot_offset, receiving.side.on_device());
    Result<SlotPool*> pool = receiving.context().pools.own(transport::Pool::device_slots);
    if (!pool.ok()) return pool.status();
    return (*pool)->memory().data() + chunk.slot_offset;
}

}  // namespace

Task<Status> take_chunks(Executor& executor, Receiving& receiving) {
    Scope pieces(executor);
    Status status;
    int since_yield = 0;
    // From the first copy out of a cell to the end of the last: a sender that fills cells slowly counts, too.
    transfer::HostReads& measured = receiving.context().host_reads;
    Nanoseconds began = 0;
    while (status.ok() && receiving.taken < receiving.accepted && !pieces.cancelled()) {
        Result<wire::Chunk> next = co_await receiving.message.arrived.next();
        if (!next.ok()) {
            status = next.status();
            break;
        }
        wire::Chunk chunk = *next;
        if (chunk.offset >= receiving.accepted) {  // past the room of a truncated receive
            status = return_slot(receiving, chunk);
            continue;
        }
        chunk.bytes = std::min(chunk.bytes, receiving.accepted - chunk.offset);
        receiving.taken += chunk.bytes;
        Result<std::byte*> slot = slot_of(receiving, chunk);
        if (!slot.ok()) {
            status = slot.status();
            break;
        }
        const transfer::HostCopy how = transfer::host_copy_from_slots(
            receiving.context(), receiving.side, static_cast<transport::Pool>(chunk.pool),
            receiving.accepted);
        if (transfer::takes_time(receiving.side, how)) {
            pieces.spawn(drain(executor, receiving, chunk, *slot, how));
            continue;
        }
        const bool in_cell = chunk.pool == static_cast<std::uint8_t>(transport::Pool::host_cells);
        if (in_cell && began == 0) began = measured.begins(receiving.sender(), chunk.bytes);
        Completion copied(executor);
        transfer::copy_from_slot(receiving.context(), receiving.staging(), chunk.offset,
                                 chunk.bytes, *slot, how, copied);
        if (began != 0 && receiving.taken >= receiving.accepted)
            measured.copied_from_slot(receiving.sender(), receiving.accepted, began);
        status = return_emptied(receiving, chunk);
        if (++since_yield % kChunksBetweenYields == 0) co_await Yield(executor);
    }
    Status joined = co_await pieces.join(executor);
    if (status.ok()) status = joined;
    co_return status;
}

// Put wire, through our slots: grants as many as the plan is deep (at least one; more than are free
// now are not waited for).
Task<Status> take_puts_in_slots(Executor& executor, Receiving& receiving) {
    Result<SlotPool*> pool = receiving.context().pools.own(transport::Pool::device_slots);
    if (!pool.ok()) co_return pool.status();
    plan::Plan& plan = receiving.verdict.choice.plan;
    plan.chunk = std::clamp<Bytes>(plan.chunk, transfer::kDeviceSlotUnit, (*pool)->largest());
    const Bytes ahead_chunk =
        receiving.message.rts.offer.chunk;  // pieces copied ahead keep the offer's size
    const Bytes slot_bytes = std::max(plan.chunk, std::min(ahead_chunk, (*pool)->largest()));
    const Bytes pieces = std::max<Bytes>(divide_up(receiving.accepted, plan.chunk), 1);
    const auto wanted = static_cast<std::size_t>(
        std::min<Bytes>(pieces, static_cast<Bytes>(std::max(plan.depth, 1))));
    std::vector<Slot> slots;
    Result<Slot> first = co_await (*pool)->acquire(executor, slot_bytes, SlotUse::sink);
    if (!first.ok()) co_return first.status();
    slots.push_back(*first);
    while (slots.size() < wanted) {
        Slot more = (*pool)->try_acquire(slot_bytes, SlotUse::sink);
        if (more.units == 0) break;
        slots.push_back(more);
    }
    std::vector<std::uint32_t> grants;
    for (const Slot& slot : slots)
        grants.push_back(slot.unit);
    Status status;
    const transport::Transport& transport = *receiving.sender().transport;
    Result<transport::Region> region =
        receiving.context().pools.region(*receiving.sender().transport);
    if (region.ok()) {
        status = answer(receiving, wire::Cts{}, transport.key(*region), grants);
    } else {
        status = region.status();
    }
    if (status.ok()) status = co_await take_chunks(executor, receiving);
    // The sender may still be writing into our slots: they are ours again only when it says that it
    // stopped.
    if (!status.ok() && receiving.answered && !receiving.message.finished.done() &&
        tell_failure(receiving.messages, receiving.message.peer, receiving.message.rts.send_id,
                     status, wire::For::sender)) {
        Status stopped = co_await receiving.message.finished;
    }
    for (const Slot& slot : slots)
        (*pool)->release(slot);
    co_return status;
}

}  // namespace gantry::p2p
