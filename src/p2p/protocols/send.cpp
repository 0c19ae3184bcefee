// SPDX-License-Identifier: BSD-3-Clause
//
// The sender's side of a rendezvous. The RTS is already in the peer's queue; this coroutine runs
// until the last byte has left the user's buffer. While the verdict is on its way the first chunks
// are copied to slots (the original started only after the CTS).
//
//   shared wire:  user -> my slot, `chunk` -> [receiver: my slot -> user, `credit`]
//   put wire:     user -> my slot -> put into the receiver's slot, `chunk` -> [receiver: slot ->
//   user, grants it again]
//                 either slot falls away where that side is direct
//   small, from a device, put wire:  user -> my slot -> `payload`; nobody answers
//   ipc:          the receiver copies out of my device memory (`finish` tells me), or I copy into
//   its
#include "base/log.hpp"
#include "base/yield.hpp"
#include "p2p/protocols/stage.hpp"

#include <algorithm>
#include <deque>
#include <memory>

namespace gantry::p2p {
namespace {

constexpr int kChunksBetweenYields = 4;

// A piece that sits in one of our slots, or is being copied there.
struct Staged {
    explicit Staged(Executor& executor) : copied(executor) {}
    Slot slot;
    Bytes offset = 0;
    Bytes bytes = 0;
    Completion copied;
};

struct Sending {
    Core& core;
    Outgoing& message;
    Side side;
    plan::Plan plan;
    Bytes limit = 0;   // bytes to send: all, or what the receiver has room for
    Bytes offset = 0;  // next byte to stage
    std::deque<std::unique_ptr<Staged>> ahead;  // put wire: copied before the verdict
};

Bytes chunk_bytes(const Sending& sending, const SlotPool& pool, SlotUse use) {
    Bytes chunk = sending.plan.chunk != 0 ? sending.plan.chunk : pool.unit_bytes();
    return std::min(chunk, pool.largest(use));
}

transport::Pool pool_of(const Sending& sending) {
    const bool devices =
        sending.side.on_device() || sending.plan.sink_engine != plan::CopyEngine::cpu;
    return devices ? transport::Pool::device_slots : transport::Pool::host_cells;
}

void start_copy_out(Sending& sending, Staged& piece) {
    if (!sending.side.on_device()) {
        copy_out(sending.side, piece.offset, piece.bytes, piece.slot.memory);
        piece.copied.complete(success());
        return;
    }
    device::Copy copy;
    copy.destination = piece.slot.memory;
    copy.source = sending.side.at(piece.offset);
    copy.bytes = piece.bytes;
    copy.gpu = sending.side.location.gpu;
    copy.engine = device::Engine::d2h;
    copy.notice = notice_of(sending.plan);
    sending.core.device.copy(copy, piece.copied);
}

Status tell_chunk(Sending& sending, const SlotPool& pool, transport::Pool which, const Slot& slot,
                  Bytes offset, Bytes bytes) {
    return sending.core.send(sending.message.peer, wire::kChunk,
                             wire::Chunk{sending.message.id, offset, bytes, pool.offset_of(slot),
                                         slot.unit, slot.units, static_cast<std::uint8_t>(which)});
}

// A piece that failed brings no slot back: whoever waits for one must hear of it.
void give_up(Sending& sending, const Status& why) {
    sending.message.grants.close(why);
}

// Shared wire, device source: the slot belongs to the receiver once it is told; before that it
// comes back on failure.
Task<Status> stage_shared(Executor& executor, Sending& sending, SlotPool& pool,
                          transport::Pool which, Slot slot, Bytes offset, Bytes bytes) {
    Staged piece(executor);
    piece.slot = slot;
    piece.offset = offset;
    piece.bytes = bytes;
    start_copy_out(sending, piece);
    Status status = co_await piece.copied;
    if (status.ok()) status = tell_chunk(sending, pool, which, slot, offset, bytes);
    if (!status.ok()) {
        pool.release(slot);
        give_up(sending, status);
    }
    co_return status;
}

// Reads the verdict into `sending`.
void adopt(Sending& sending, const wire::ClearToSend& cts) {
    const Bytes offered_chunk = sending.plan.chunk;
    sending.message.cts = cts;
    sending.plan = wire::decode(cts.verdict);
    if (sending.plan.chunk == 0) sending.plan.chunk = offered_chunk;
    sending.limit = cts.accepted;
}

// Runs the shared-memory pipeline as far as it is allowed: `ahead` chunks without a verdict, then
// the rest. Ends early when the verdict is another protocol.
Task<Status> send_shared(Executor& executor, Sending& sending, bool* answered) {
    const transport::Pool which = pool_of(sending);
    Result<SlotPool*> pool = sending.core.pool(which);
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
        const Bytes bytes =
            std::min(chunk_bytes(sending, **pool, use), sending.limit - sending.offset);
        Slot slot;
        if (!*answered) {
            if (started < sending.plan.ahead) slot = (*pool)->try_acquire(bytes, use);
            if (slot.units == 0) {
                Result<wire::ClearToSend> cts = co_await sending.message.answers.next();
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
        if (sending.side.on_device()) {
            chunks.spawn(stage_shared(executor, sending, **pool, which, slot, offset, bytes));
            continue;
        }
        copy_out(sending.side, offset, bytes, slot.memory, stores_for(which, sending.limit));
        status = tell_chunk(sending, **pool, which, slot, offset, bytes);
        if (!status.ok()) {
            (*pool)->release(slot);
            break;
        }
        if (started % kChunksBetweenYields == 0) co_await Yield(executor);
    }
    Status joined = co_await chunks.join(executor);
    if (status.ok()) status = joined;
    co_return status;
}

// Put wire: copies to slots that start before the verdict.
void stage_ahead(Executor& executor, Sending& sending) {
    if (sending.plan.source_stage != plan::Stage::slot || sending.plan.ahead == 0) return;
    Result<SlotPool*> pool = sending.core.pool(transport::Pool::device_slots);
    if (!pool.ok()) return;
    for (int i = 0; i < sending.plan.ahead && sending.offset < sending.limit; ++i) {
        const Bytes bytes =
            std::min(chunk_bytes(sending, **pool, SlotUse::ahead), sending.limit - sending.offset);
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

// Ahead copies that the verdict has no use for end before their slots go back.
Task<Status> drop_ahead(Executor&, Sending& sending, SlotPool& pool) {
    while (!sending.ahead.empty()) {
        Staged& piece = *sending.ahead.front();
        Status ignored = co_await piece.copied;
        pool.release(piece.slot);
        sending.ahead.pop_front();
    }
    co_return success();
}

// One piece over the put wire, from a staged slot or straight from the user's buffer.
Task<Status> put_piece(Executor& executor, Sending& sending, SlotPool* pool,
                       std::unique_ptr<Staged> staged, Bytes offset, Bytes bytes,
                       std::uint32_t grant, int rail) {
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
        const Bytes at =
            into_slot ? grant * kDeviceSlotUnit : sending.message.cts.sink_offset + offset;
        Completion put(executor);
        transport::Transport* transport = sending.core.peer(sending.message.peer).transport;
        transport->put(sending.message.peer, rail, source, bytes, sending.message.key, at, put);
        status = co_await put;
    }
    if (status.ok() && into_slot)
        status = sending.core.send(
            sending.message.peer, wire::kChunk,
            wire::Chunk{sending.message.id, offset, bytes, grant * kDeviceSlotUnit, grant, 0,
                        static_cast<std::uint8_t>(transport::Pool::device_slots)});
    if (staged != nullptr) pool->release(staged->slot);
    if (!status.ok()) give_up(sending, status);
    co_return status;
}

Task<Status> send_puts(Executor& executor, Sending& sending) {
    SlotPool* pool = nullptr;
    const bool staged_source = sending.plan.source_stage == plan::Stage::slot;
    if (staged_source || !sending.ahead.empty()) {
        Result<SlotPool*> slots = sending.core.pool(transport::Pool::device_slots);
        if (!slots.ok()) co_return slots.status();
        pool = *slots;
    }
    if (!staged_source && !sending.ahead.empty()) {
        Status dropped = co_await drop_ahead(executor, sending, *pool);
        sending.offset = 0;
    }
    const bool into_slots = sending.plan.sink_stage == plan::Stage::slot;
    Scope pieces(executor);
    Status status;
    int index = 0;
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
            bytes = std::min(bytes, chunk_bytes(sending, *pool, SlotUse::source));
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
        const int rail = index++ % std::max(sending.plan.rails, 1);
        pieces.spawn(
            put_piece(executor, sending, pool, std::move(staged), offset, bytes, grant, rail));
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
            sending.core.send(sending.message.peer, wire::kFinish,
                              wire::Finish{sending.message.id, MPI_SUCCESS, wire::For::receiver});
    co_return status;
}

// The receiver named its device memory: copy into it. Fails as MPI_ERR_UNSUPPORTED_OPERATION when
// it cannot be mapped here.
Task<Status> put_by_ipc(Executor& executor, Sending& sending) {
    const device::IpcHandle handle = wire::decode(sending.message.cts.handle);
    device::Device& device = sending.core.device;
    // Our own buffer's GPU copies, else the receiver's if we see it.
    const int gpu = sending.side.on_device() ? sending.side.location.gpu
                                             : std::max(device.gpu_of(handle.gpu), 0);
    Result<void*> mapped = device.open_memory(handle, gpu);
    if (!mapped.ok())
        co_return failure(MPI_ERR_UNSUPPORTED_OPERATION,
                          "the peer's device memory cannot be mapped: {}", mapped.status().text());
    auto* sink = static_cast<std::byte*>(*mapped) + (sending.message.cts.sink_offset - handle.base);
    Status status;
    if (sending.side.on_device() && device.gpu_of(handle.gpu) == gpu)
        status = co_await copy_inside(executor, sending.core, sink, sending.side.at(0),
                                      sending.limit, gpu, sending.plan);
    else
        status =
            co_await device_copy(executor, sending.core, sink, sending.side.at(0), sending.limit,
                                 gpu, engine_of(sending.plan), notice_of(sending.plan));
    device.close_memory(handle, gpu);
    co_return status;
}

Status tell_in_place(Sending& sending, Bytes bytes) {
    return sending.core.send(sending.message.peer, wire::kChunk,
                             wire::Chunk{sending.message.id, 0, bytes, 0, 0, 0, wire::kInPlace});
}

Status tell_receiver(Sending& sending, const Status& status) {
    const std::string text(status.text().substr(0, 1024));
    return sending.core.send(
        sending.message.peer, wire::kFinish,
        wire::Finish{sending.message.id, status.error_class(), wire::For::receiver},
        std::as_bytes(std::span(text)));
}

// The offer was eager: nobody answers, the bytes follow as soon as they are out of the device.
Task<Status> send_payload(Executor& executor, Sending& sending) {
    Core& core = sending.core;
    const Bytes bytes = sending.message.bytes;
    const wire::Payload head{sending.message.id};
    Status status;
    if (!sending.side.on_device()) {  // packed already
        status = core.send(sending.message.peer, wire::kPayload, head,
                           transport::ConstSpan(sending.side.at(0), bytes));
    } else {
        Result<SlotPool*> pool = core.pool(transport::Pool::device_slots);
        GANTRY_CO_TRY(pool.status());
        Slot slot;
        std::unique_ptr<std::byte[]> memory;
        std::byte* staging = nullptr;
        if (bytes <= (*pool)->largest(SlotUse::source)) {
            Result<Slot> granted = co_await (*pool)->acquire(executor, bytes, SlotUse::source);
            GANTRY_CO_TRY(granted.status());
            slot = *granted;
            staging = slot.memory;
        } else {  // a limit above what a slot holds
            Result<std::unique_ptr<std::byte[]>> made = host_memory(bytes, "a device message");
            GANTRY_CO_TRY(made.status());
            memory = std::move(*made);
            staging = memory.get();
        }
        status = co_await device_copy(executor, core, staging, sending.side.at(0), bytes,
                                      sending.side.location.gpu, device::Engine::d2h,
                                      notice_of(sending.plan));
        if (status.ok())
            status = core.send(sending.message.peer, wire::kPayload, head,
                               transport::ConstSpan(staging, bytes));
        if (slot.units != 0) (*pool)->release(slot);
    }
    if (status.ok() && sending.message.question.synchronous)
        status = co_await sending.message.finished;
    co_return status;
}

Task<Status> run(Executor& executor, Core& core, Outgoing& message) {
    Sending sending{core,
                    message,
                    Side{message.buffer, message.location, nullptr},
                    message.choice.plan,
                    message.bytes,
                    0,
                    {}};
    const bool shared = core.peer(message.peer).facts.shared_memory;
    Status status;
    if (sending.side.on_device() && !message.buffer.contiguous()) {
        Result<std::unique_ptr<std::byte[]>> packed =
            host_memory(message.bytes, "a strided device message");
        if (!packed.ok()) co_return packed.status();
        message.packed = std::move(*packed);
        status = co_await pack_from_device(executor, core, message.buffer, message.location,
                                           message.packed.get());
        GANTRY_CO_TRY(status);
        sending.side.packed = message.packed.get();
    }
    if (sending.plan.protocol == plan::Protocol::eager) {
        status = co_await send_payload(executor, sending);
        co_return status;
    }
    bool answered = false;
    bool verdict_needed = true;
    if (sending.plan.protocol == plan::Protocol::pipeline && sending.plan.ahead > 0 &&
        message.bytes > 0) {
        if (shared) {
            status = co_await send_shared(executor, sending, &answered);
            if (!status.ok() && !answered) {
                // The receiver may be reading our buffer already, by another protocol: only its
                // verdict says whether this matters.
                Result<wire::ClearToSend> cts = co_await message.answers.next();
                if (!cts.ok()) co_return cts.status();
                adopt(sending, *cts);
                answered = true;
            }
            if (sending.plan.protocol == plan::Protocol::pipeline) GANTRY_CO_TRY(status);
            // Everything is out of the user's buffer: done, unless the program asked to know that
            // it was matched.
            if (sending.offset >= message.bytes && !message.question.synchronous)
                verdict_needed = false;
        } else {
            stage_ahead(executor, sending);
        }
    }
    while (verdict_needed) {
        if (!answered) {
            Result<wire::ClearToSend> cts = co_await message.answers.next();
            if (!cts.ok()) {
                status = cts.status();
                break;
            }
            adopt(sending, *cts);
        }
        answered = false;
        const plan::Protocol protocol = sending.plan.protocol;
        if (protocol == plan::Protocol::pipeline && shared) {
            answered = true;
            status = co_await send_shared(executor, sending, &answered);
            break;
        }
        if (protocol == plan::Protocol::pipeline || protocol == plan::Protocol::rdma) {
            status = co_await send_puts(executor, sending);
            break;
        }
        if (protocol == plan::Protocol::ipc && sending.plan.executor == plan::Executor::sender) {
            status = co_await put_by_ipc(executor, sending);
            const bool refused = status.error_class() == MPI_ERR_UNSUPPORTED_OPERATION;
            if (status.ok() || refused) {
                sending.offset = 0;
                status = tell_in_place(sending, refused ? 0 : sending.limit);
                if (refused && status.ok()) continue;
            }
            break;
        }
        // The receiver copies out of our memory, or from our buffer in this very process. (Its
        // `finish` alone may say so: Core::on_finish.)
        status = co_await message.finished;
        break;
    }
    if (!sending.ahead.empty()) {
        Result<SlotPool*> pool = core.pool(transport::Pool::device_slots);
        Status dropped = co_await drop_ahead(executor, sending, **pool);
    }
    co_return status;
}

}  // namespace

Task<Status> send_rendezvous(Executor& executor, Core& core, Outgoing& message) {
    Status status = co_await run(executor, core, message);
    // The receiver gave up while our last pieces were on their way: it waits to hear that nothing
    // of us is in flight.
    if (status.ok() && message.finished.done()) status = message.finished.status();
    if (!status.ok() && core.peer(message.peer).lost.ok()) {
        Sending sending{core, message, {}, {}, 0, 0, {}};
        Status told = tell_receiver(sending, status);
        if (!told.ok())
            log::error("rank {} was not told of a failed send: {}", message.peer, told.text());
    }
    Request& request = *message.request;
    core.remove_outgoing(message.id);
    core.finish_request(request, status);
    co_return success();
}

}  // namespace gantry::p2p
