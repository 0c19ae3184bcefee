// SPDX-License-Identifier: BSD-3-Clause
//
// The source of a staged message whose pieces are told of by chunk messages. Pieces go to our slots,
// some before the verdict is known, and from there
//
//   shared wire   the receiver reads the slot in place, and gives it back by a credit
//   put wire      into a slot of the receiver's that it granted, or straight into its buffer; where the
//                 rails read the user's buffer, without a slot of ours (docs/wire.md section 2)
//
// What puts read is registered until the message ends. protocols/send_by_flags.cpp is the same stage for
// messages that need nothing of their receiver but the slots.
#include "base/log.hpp"
#include "base/yield.hpp"
#include "p2p/offer.hpp"
#include "p2p/rendezvous_send.hpp"

#include <algorithm>

namespace gantry::p2p {
namespace {

constexpr int kChunksBetweenYields = 4;

// Pieces of a message that was planned whole and must be staged after all.
constexpr Bytes kRefusedChunk = 256 * kKiB;

// Registers what puts read straight from the user's buffer, where the transport asks for it.
Status register_buffer(Sending& sending) {
    const transfer::Endpoint& peer = sending.peer();
    const bool needed = peer.facts.registers_sources || sending.side.on_device();
    if (!needed || sending.limit == 0) return success();
    return register_source(sending.messages, sending.message);
}

// The receiver need not know: where the bytes come from is our own business.
void stage_source_instead(Sending& sending, const Status& refused) {
    log::info("p2p: message to rank {} is staged: {}", sending.message.peer, refused.text());
    sending.plan.source_stage = plan::Stage::slot;
    sending.plan.source_engine =
        sending.side.on_device() ? plan::CopyEngine::copy_engine : plan::CopyEngine::cpu;
    if (sending.plan.protocol == plan::Protocol::rdma) sending.plan.chunk = kRefusedChunk;
}

// Slots that cannot be registered are left to the transport to deal with.
transport::Region slots_as_source(Sending& sending) {
    if (!sending.peer().facts.registers_sources) return {};
    Result<transport::Region> region = sending.context().pools.region(*sending.peer().transport);
    return region.ok() ? *region : transport::Region{};
}

Bytes chunk_bytes(const Sending& sending, const SlotPool& pool) {
    Bytes chunk = sending.plan.chunk != 0 ? sending.plan.chunk : pool.unit_bytes();
    return std::min(chunk, pool.largest());
}

// The next piece, on its way into that slot.
std::unique_ptr<Staged> stage(Sending& sending, const Slot& slot, Bytes offset, Bytes bytes,
                              transfer::HostCopy how) {
    auto piece = std::make_unique<Staged>(sending.messages.executor);
    piece->slot = slot;
    piece->offset = offset;
    piece->bytes = bytes;
    piece->begin = sending.context().begins();
    transfer::copy_to_slot(sending.context(), sending.staging(), offset, bytes, slot.memory, how,
                           piece->copied);
    return piece;
}

// Shared wire: the slot is the receiver's once it is told.
Status tell_chunk(Sending& sending, SlotPool& pool, transport::Pool which, const Slot& slot,
                  Bytes offset, Bytes bytes) {
    Status told =
        sending.messages.send(sending.message.peer, wire::kChunk,
                              wire::Chunk{sending.message.id, offset, bytes, pool.offset_of(slot),
                                          slot.unit, slot.units, static_cast<std::uint8_t>(which)});
    if (told.ok()) pool.grant(slot, sending.message.peer);
    return told;
}

// A piece that failed brings no slot back: whoever waits for one must hear of it.
void give_up(Sending& sending, const Status& why) {
    sending.message.grants.close(why);
}

Task<Status> tell_when_staged(Executor&, Sending& sending, SlotPool& pool, transport::Pool which,
                              std::unique_ptr<Staged> piece) {
    Status status = co_await piece->copied;
    sending.context().moved("into a slot", piece->begin, sending.side.location.gpu, piece->bytes);
    if (status.ok())
        status = tell_chunk(sending, pool, which, piece->slot, piece->offset, piece->bytes);
    if (!status.ok()) {
        pool.release(piece->slot);
        give_up(sending, status);
    }
    co_return status;
}

transport::Pool pool_of(const Sending& sending) {
    const bool devices =
        sending.side.on_device() || sending.plan.sink_engine != plan::CopyEngine::cpu;
    return devices ? transport::Pool::device_slots : transport::Pool::host_cells;
}

// One piece over the put wire, from a staged slot or straight from the user's buffer.
Task<Status> put_piece(Executor& executor, Sending& sending, SlotPool* pool,
                       std::unique_ptr<Staged> staged, Bytes offset, Bytes bytes,
                       std::uint32_t grant, transport::Region from) {
    Status status;
    const std::byte* source = nullptr;
    if (staged != nullptr) {
        status = co_await staged->copied;
        sending.context().moved("into a slot", staged->begin, sending.side.location.gpu, bytes);
        source = staged->slot.memory;
    } else {
        source = sending.side.at(offset);
    }
    const bool into_slot = sending.plan.sink_stage == plan::Stage::slot;
    if (status.ok()) {
        const Nanoseconds begin = sending.context().begins();
        const Bytes at = into_slot ? grant * transfer::kDeviceSlotUnit
                                   : sending.message.cts.sink_offset + offset;
        const int peer = sending.message.peer;
        const transport::RemoteKey& key = sending.message.key;
        const wire::Chunk chunk{sending.message.id,
                                offset,
                                bytes,
                                grant * transfer::kDeviceSlotUnit,
                                grant,
                                0,
                                static_cast<std::uint8_t>(transport::Pool::device_slots)};
        transfer::Endpoint& endpoint = sending.peer();
        bool told = false;
        if (transfer::RailScheduler::serves(endpoint)) {
            const transfer::Put put{source, bytes, from, &key, at, sending.plan.rails};
            status = co_await sending.context().rails.put(executor, endpoint, put);
        } else {
            constexpr int kOnlyRail = 0;
            Completion put(executor);
            told = into_slot &&
                   endpoint.transport->put_and_tell(peer, kOnlyRail, source, bytes, from, key, at,
                                                    wire::kChunk, wire::bytes_of(chunk), put);
            if (!told) endpoint.transport->put(peer, kOnlyRail, source, bytes, from, key, at, put);
            status = co_await put;
        }
        sending.context().moved("put by the network", begin, -1, bytes);
        if (status.ok() && into_slot && !told)
            status = sending.messages.send(peer, wire::kChunk, chunk);
    }
    if (staged != nullptr) pool->release(staged->slot);
    if (!status.ok()) give_up(sending, status);
    co_return status;
}

}  // namespace

// Runs the shared-memory pipeline as far as it is allowed: `ahead` chunks without a verdict, then
// the rest. Ends early when the verdict is another protocol.
Task<Status> send_shared(Executor& executor, Sending& sending) {
    const transport::Pool which = pool_of(sending);
    Result<SlotPool*> pool = sending.context().pools.own(which);
    if (!pool.ok()) co_return pool.status();
    Scope chunks(executor);
    Status status;
    int in_flight = 0;
    int started = 0;
    while (status.ok() && sending.offset < sending.limit && !chunks.cancelled()) {
        const bool ahead = !sending.answered;
        if (ahead && !sending.message.answers.empty()) {
            status = co_await await_verdict(executor, sending);
            continue;
        }
        if (sending.plan.protocol != plan::Protocol::pipeline) break;
        while (!sending.message.grants.empty()) {
            sending.message.grants.pop();
            --in_flight;
        }
        const SlotUse use = ahead ? SlotUse::ahead : SlotUse::source;
        const Bytes bytes = std::min(chunk_bytes(sending, **pool), sending.limit - sending.offset);
        Slot slot;
        if (ahead) {
            if (started < sending.plan.ahead) slot = (*pool)->try_acquire(bytes, use);
            if (slot.units == 0) {
                status = co_await await_verdict(executor, sending);
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
        const transport::Pool meant = ahead ? which : pool_of(sending);
        const transfer::HostCopy how =
            transfer::host_copy_to_slots(sending.context(), sending.side, meant, sending.limit);
        if (transfer::takes_time(sending.side, how)) {
            chunks.spawn(tell_when_staged(executor, sending, **pool, which,
                                          stage(sending, slot, offset, bytes, how)));
            continue;
        }
        Completion copied(executor);
        transfer::copy_to_slot(sending.context(), sending.staging(), offset, bytes, slot.memory,
                               how, copied);
        status = tell_chunk(sending, **pool, which, slot, offset, bytes);
        if (!status.ok()) {
            (*pool)->release(slot);
            break;
        }
        // The verdict may be there, and want nothing of this.
        if (ahead || started % kChunksBetweenYields == 0) co_await Yield(executor);
    }
    Status joined = co_await chunks.join(executor);
    if (status.ok()) status = joined;
    co_return status;
}

void stage_ahead(Sending& sending, int pieces) {
    if (sending.plan.source_stage != plan::Stage::slot) return;
    Result<SlotPool*> pool = sending.context().pools.own(transport::Pool::device_slots);
    if (!pool.ok()) return;
    while (sending.ahead.size() < static_cast<std::size_t>(pieces) &&
           sending.offset < sending.limit) {
        const Bytes bytes = std::min(chunk_bytes(sending, **pool), sending.limit - sending.offset);
        Slot slot = (*pool)->try_acquire(bytes, SlotUse::ahead);
        if (slot.units == 0) return;
        sending.ahead.push_back(
            stage(sending, slot, sending.offset, bytes, transfer::HostCopy::cached));
        sending.offset += bytes;
    }
}

Task<Status> drop_ahead(Executor&, Sending& sending, SlotPool& pool) {
    while (!sending.ahead.empty()) {
        Staged& piece = *sending.ahead.front();
        Status ignored = co_await piece.copied;
        pool.release(piece.slot);
        sending.ahead.pop_front();
    }
    co_return success();
}

Task<Status> send_puts(Executor& executor, Sending& sending) {
    if (sending.plan.source_stage == plan::Stage::direct) {
        if (Status refused = register_buffer(sending)) stage_source_instead(sending, refused);
    }
    SlotPool* pool = nullptr;
    const bool staged_source = sending.plan.source_stage == plan::Stage::slot;
    transport::Region from = sending.message.source;
    if (staged_source || !sending.ahead.empty()) {
        Result<SlotPool*> slots = sending.context().pools.own(transport::Pool::device_slots);
        if (!slots.ok()) co_return slots.status();
        pool = *slots;
    }
    if (staged_source) from = slots_as_source(sending);
    if (!staged_source && !sending.ahead.empty()) {
        Status dropped = co_await drop_ahead(executor, sending, *pool);
        sending.offset = 0;
    }
    const bool into_slots = sending.plan.sink_stage == plan::Stage::slot;
    Scope pieces(executor);
    Status status;
    Bytes offset = 0;
    while (offset < sending.limit && !pieces.cancelled()) {
        std::uint32_t grant = 0;
        if (into_slots) {
            Result<std::uint32_t> granted = co_await sending.message.grants.next();
            if (!granted.ok()) {
                status = granted.status();
                break;
            }
            grant = *granted;
        }
        Bytes bytes = sending.limit - offset;
        std::unique_ptr<Staged> staged;
        if (!sending.ahead.empty()) {
            staged = std::move(sending.ahead.front());
            sending.ahead.pop_front();
            bytes = std::min(bytes, staged->bytes);
        } else if (staged_source) {
            bytes = std::min(bytes, chunk_bytes(sending, *pool));
            Result<Slot> slot = co_await pool->acquire(executor, bytes, SlotUse::source);
            if (!slot.ok()) {
                status = slot.status();
                break;
            }
            staged = stage(sending, *slot, offset, bytes, transfer::HostCopy::cached);
        } else if (sending.plan.protocol == plan::Protocol::pipeline && sending.plan.chunk != 0) {
            bytes = std::min(bytes, sending.plan.chunk);
        }
        pieces.spawn(
            put_piece(executor, sending, pool, std::move(staged), offset, bytes, grant, from));
        offset += bytes;
    }
    Status joined = co_await pieces.join(executor);
    if (status.ok()) status = joined;
    if (pool != nullptr) {
        Status dropped = co_await drop_ahead(executor, sending, *pool);
    }
    // A direct sink sees no chunks: tell it that everything is in place.
    if (status.ok() && !into_slots)
        status =
            sending.messages.send(sending.message.peer, wire::kFin,
                                  wire::Fin{sending.message.id, MPI_SUCCESS, wire::For::receiver});
    co_return status;
}

}  // namespace gantry::p2p
