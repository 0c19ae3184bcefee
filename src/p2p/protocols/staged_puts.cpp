// SPDX-License-Identifier: BSD-3-Clause
//
// The sender's put wire: pieces go from slots, or straight from the user's buffer where the rails
// read it, into the receiver's slots or memory (docs/wire.md section 2). What puts read is
// registered until the message ends.
#include "base/log.hpp"
#include "p2p/offer.hpp"
#include "p2p/rendezvous_send.hpp"

#include <algorithm>

namespace gantry::p2p {
namespace {

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

// One piece over the put wire, from a staged slot or straight from the user's buffer.
Task<Status> put_piece(Executor& executor, Sending& sending, SlotPool* pool,
                       std::unique_ptr<Staged> staged, Bytes offset, Bytes bytes,
                       std::uint32_t grant, transport::Region from) {
    Status status;
    const std::byte* source = nullptr;
    if (staged != nullptr) {
        status = co_await staged->copied;
        source = staged->slot.memory;
    } else {
        source = sending.side.at(offset);
    }
    const bool into_slot = sending.plan.sink_stage == plan::Stage::slot;
    if (status.ok()) {
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
        if (status.ok() && into_slot && !told)
            status = sending.messages.send(peer, wire::kChunk, chunk);
    }
    if (staged != nullptr) pool->release(staged->slot);
    if (!status.ok()) give_up(sending, status);
    co_return status;
}

}  // namespace

Bytes chunk_bytes(const Sending& sending, const SlotPool& pool) {
    Bytes chunk = sending.plan.chunk != 0 ? sending.plan.chunk : pool.unit_bytes();
    return std::min(chunk, pool.largest());
}

namespace {

Task<Status> pack_to_slot(Executor& executor, Sending& sending, Staged& piece) {
    Status status = co_await transfer::pack_from_device(
        executor, sending.context(), sending.side.piece(piece.offset, piece.bytes),
        piece.slot.memory, transfer::movers_of(sending.context(), sending.plan.source_engine),
        transfer::notice_of(sending.plan));
    piece.copied.complete(std::move(status));
    co_return success();
}

}  // namespace

void start_copy_out(Sending& sending, Staged& piece, bool shared) {
    if (!sending.side.on_device()) {
        if (shared &&
            sending.context().host_copies.start(
                {piece.slot.memory, sending.side.at(piece.offset), piece.bytes}, piece.copied))
            return;
        transfer::copy_out(sending.side, piece.offset, piece.bytes, piece.slot.memory,
                           shared ? transfer::Stores::streaming : transfer::Stores::cached);
        piece.copied.complete(success());
        return;
    }
    if (!sending.side.contiguous()) {
        Task<Status> packing = pack_to_slot(sending.messages.executor, sending, piece);
        if (packing.done())  // there was no memory for it
            piece.copied.complete(packing.take());
        else
            sending.context().operations.spawn(std::move(packing));
        return;
    }
    device::Copy copy;
    copy.destination = piece.slot.memory;
    copy.source = sending.side.at(piece.offset);
    copy.bytes = piece.bytes;
    copy.gpu = sending.side.location.gpu;
    copy.engine = device::Engine::d2h;
    copy.notice = transfer::notice_of(sending.plan);
    sending.messages.device.copy(copy, piece.copied);
}

void give_up(Sending& sending, const Status& why) {
    sending.message.grants.close(why);
}

void stage_ahead(Executor& executor, Sending& sending, int pieces) {
    if (sending.plan.source_stage != plan::Stage::slot) return;
    Result<SlotPool*> pool = sending.context().pools.own(transport::Pool::device_slots);
    if (!pool.ok()) return;
    while (sending.ahead.size() < static_cast<std::size_t>(pieces) &&
           sending.offset < sending.limit) {
        const Bytes bytes = std::min(chunk_bytes(sending, **pool), sending.limit - sending.offset);
        Slot slot = (*pool)->try_acquire(bytes, SlotUse::ahead);
        if (slot.units == 0) return;
        Staged& piece = *sending.ahead.emplace_back(std::make_unique<Staged>(executor));
        piece.slot = slot;
        piece.offset = sending.offset;
        piece.bytes = bytes;
        sending.offset += bytes;
        start_copy_out(sending, piece);
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
            staged = std::make_unique<Staged>(executor);
            staged->slot = *slot;
            staged->offset = offset;
            staged->bytes = bytes;
            start_copy_out(sending, *staged);
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
