// SPDX-License-Identifier: BSD-3-Clause
//
// The source of a staged message inside a node: pieces go to slots that the receiver reads in place,
// some of them before the verdict is known.
//
//   user -> my slot, `chunk` -> [receiver: my slot -> user, `credit`]
#include "base/yield.hpp"
#include "p2p/rendezvous_send.hpp"

#include <algorithm>

namespace gantry::p2p {
namespace {

constexpr int kChunksBetweenYields = 4;

transport::Pool pool_of(const Sending& sending) {
    const bool devices =
        sending.side.on_device() || sending.plan.sink_engine != plan::CopyEngine::cpu;
    return devices ? transport::Pool::device_slots : transport::Pool::host_cells;
}

Status tell_chunk(Sending& sending, SlotPool& pool, transport::Pool which, const Slot& slot,
                  Bytes offset, Bytes bytes) {
    Status told =
        sending.messages.send(sending.message.peer, wire::kChunk,
                              wire::Chunk{sending.message.id, offset, bytes, pool.offset_of(slot),
                                          slot.unit, slot.units, static_cast<std::uint8_t>(which)});
    if (told.ok()) pool.lend(slot, sending.message.peer);
    return told;
}

// Shared wire, a copy that takes its time: the slot belongs to the receiver once it is told; before
// that it comes back on failure.
Task<Status> stage_shared(Executor& executor, Sending& sending, SlotPool& pool,
                          transport::Pool which, Slot slot, Bytes offset, Bytes bytes,
                          bool shared) {
    Staged piece(executor);
    piece.slot = slot;
    piece.offset = offset;
    piece.bytes = bytes;
    start_copy_out(sending, piece, shared);
    Status status = co_await piece.copied;
    if (status.ok()) status = tell_chunk(sending, pool, which, slot, offset, bytes);
    if (!status.ok()) {
        pool.release(slot);
        give_up(sending, status);
    }
    co_return status;
}

}  // namespace

// Runs the shared-memory pipeline as far as it is allowed: `ahead` chunks without a verdict, then
// the rest. Ends early when the verdict is another protocol.
Task<Status> send_shared(Executor& executor, Sending& sending, bool* answered) {
    const transport::Pool which = pool_of(sending);
    Result<SlotPool*> pool = sending.context().pools.own(which);
    if (!pool.ok()) co_return pool.status();
    Scope chunks(executor);
    Status status;
    int in_flight = 0;
    int started = 0;
    while (sending.offset < sending.limit && !chunks.cancelled()) {
        if (!*answered && !sending.message.answers.empty()) {
            adopt(sending, sending.message.answers.pop());
            *answered = true;
            continue;
        }
        if (sending.plan.protocol != plan::Protocol::pipeline) break;
        while (!sending.message.grants.empty()) {
            sending.message.grants.pop();
            --in_flight;
        }
        const SlotUse use = *answered ? SlotUse::source : SlotUse::ahead;
        const Bytes bytes = std::min(chunk_bytes(sending, **pool), sending.limit - sending.offset);
        Slot slot;
        if (!*answered) {
            if (started < sending.plan.ahead) slot = (*pool)->try_acquire(bytes, use);
            if (slot.units == 0) {
                Result<wire::Cts> cts = co_await sending.message.answers.next();
                if (!cts.ok()) {
                    status = cts.status();
                    break;
                }
                adopt(sending, *cts);
                *answered = true;
                continue;
            }
        } else {
            if (in_flight >= std::max(sending.plan.depth, 1)) {
                Result<std::uint32_t> returned = co_await sending.message.grants.next();
                if (!returned.ok()) {
                    status = returned.status();
                    break;
                }
                --in_flight;
                continue;
            }
            Result<Slot> waited = co_await (*pool)->acquire(executor, bytes, use);
            if (!waited.ok()) {
                status = waited.status();
                break;
            }
            slot = *waited;
        }
        ++in_flight;
        ++started;
        const Bytes offset = sending.offset;
        sending.offset += bytes;
        // Cells filled before the verdict are host cells, also where a copy engine empties them.
        const transport::Pool meant = *answered ? pool_of(sending) : which;
        const bool shared =
            transfer::copies_shared(sending.context(), sending.side, meant, sending.limit);
        if (sending.side.on_device() || shared) {
            chunks.spawn(
                stage_shared(executor, sending, **pool, which, slot, offset, bytes, shared));
            continue;
        }
        transfer::copy_out(sending.side, offset, bytes, slot.memory,
                           transfer::stores_into_slots(meant, sending.limit));
        status = tell_chunk(sending, **pool, which, slot, offset, bytes);
        if (!status.ok()) {
            (*pool)->release(slot);
            break;
        }
        // The verdict may be there, and want nothing of this.
        if (!*answered || started % kChunksBetweenYields == 0) co_await Yield(executor);
    }
    Status joined = co_await chunks.join(executor);
    if (status.ok()) status = joined;
    co_return status;
}

}  // namespace gantry::p2p
