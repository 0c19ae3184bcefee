// SPDX-License-Identifier: BSD-3-Clause
//
// The sender's side of a rendezvous. The RTS is already in the peer's queue; this coroutine runs
// until the last byte has left the user's buffer. While the verdict is on its way the first chunks
// are copied to slots (the original started only after the CTS).
//
//   shared wire:  user -> my slot, `chunk` -> [receiver: my slot -> user, `credit`]
//   put wire:     user -> my slot -> put into the receiver's slot, `chunk` -> [receiver: slot ->
//                 user, grants it again]; either slot falls away where that side is direct
//   small, from a device, put wire:  user -> my slot -> `payload`; nobody answers
//   lent:         the receiver's transport fetches it from the user's buffer; nobody says anything
//   ipc:          the receiver copies out of my device memory (`finish` tells me), or I copy into
//                 its
#include "base/log.hpp"
#include "base/yield.hpp"
#include "p2p/protocols/sending.hpp"

#include <algorithm>
#include <memory>

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
        sending.core.send(sending.message.peer, wire::kChunk,
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
        // Cells filled before the verdict are host cells, also where a copy engine empties them.
        const transport::Pool meant = *answered ? pool_of(sending) : which;
        const bool shared = copies_shared(sending.core, sending.side, meant, sending.limit);
        if (sending.side.on_device() || shared) {
            chunks.spawn(
                stage_shared(executor, sending, **pool, which, slot, offset, bytes, shared));
            continue;
        }
        copy_out(sending.side, offset, bytes, slot.memory, stores_into_slots(meant, sending.limit));
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

// The receiver named its device memory: copy into it. Fails as MPI_ERR_UNSUPPORTED_OPERATION when
// it cannot be mapped here.
Task<Status> put_by_ipc(Executor& executor, Sending& sending) {
    const device::IpcHandle handle = wire::decode(sending.message.cts.handle);
    device::Device& device = sending.core.device;
    // Our own buffer's GPU copies, else the receiver's if we see it.
    const int gpu = sending.side.on_device() ? sending.side.location.gpu
                                             : std::max(device.gpu_of(handle.gpu), 0);
    // Room was needed for other mappings: this one has to repay itself again.
    if (sending.message.cts.sink_open != 0 && device.access(handle, gpu) != device::Access::open)
        co_return failure(MPI_ERR_PENDING, "the mapping was closed meanwhile");
    Result<void*> mapped = device.open_memory(handle, gpu);
    if (!mapped.ok())
        co_return failure(MPI_ERR_UNSUPPORTED_OPERATION,
                          "the peer's device memory cannot be mapped: {}", mapped.status().text());
    auto* sink = static_cast<std::byte*>(*mapped) + (sending.message.cts.sink_offset - handle.base);
    const bool inside = sending.side.on_device() && device.gpu_of(handle.gpu) == gpu &&
                        device.gpu_facts(gpu).queue_turn > 0;
    Status status = co_await direct_copy(executor, sending.core, sink, sending.side.at(0),
                                         sending.limit, gpu, sending.plan, inside);
    device.close_memory(handle, gpu);
    co_return status;
}

Status tell_in_place(Sending& sending, Bytes bytes, std::uint32_t why = wire::kRefused) {
    return sending.core.send(sending.message.peer, wire::kChunk,
                             wire::Chunk{sending.message.id, 0, bytes, 0, why, 0, wire::kInPlace});
}

// The offer was eager: nobody answers, the bytes follow as soon as they are out of the device.
Task<Status> send_payload(Executor& executor, Sending& sending) {
    Core& core = sending.core;
    const Bytes bytes = sending.message.bytes;
    const wire::Payload head{sending.message.id};
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
    Status status;
    if (sending.side.contiguous())
        status = co_await device_copy(executor, core, staging, sending.side.at(0), bytes,
                                      sending.side.location.gpu, device::Engine::d2h,
                                      notice_of(sending.plan));
    else
        status = co_await pack_from_device(executor, core, sending.side.piece(0, bytes), staging,
                                           movers_of(core, sending.plan.source_engine),
                                           notice_of(sending.plan));
    // Whoever gave up meanwhile said so there.
    if (status.ok() && sending.message.finished.done()) status = sending.message.finished.status();
    if (status.ok())
        status = core.send(sending.message.peer, wire::kPayload, head,
                           transport::ConstSpan(staging, bytes));
    if (slot.units != 0) (*pool)->release(slot);
    if (status.ok() && sending.message.question.synchronous)
        status = co_await sending.message.finished;
    co_return status;
}

Task<Status> run(Executor& executor, Core& core, Outgoing& message) {
    Sending sending{
        core, message, Side{message.buffer, message.location}, message.choice.plan, message.bytes,
        0,    {}};
    const bool shared = core.peer(message.peer).facts.shared_memory;
    Status status;
    if (message.lent) {
        status = co_await message.fetched;
        if (status.error_class() != MPI_ERR_PENDING) co_return status;
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
            // Each costs the processor microseconds, and the request waits for the first alone.
            stage_ahead(executor, sending, 1);
            if (sending.plan.ahead > 1) {
                co_await Yield(executor);
                stage_ahead(executor, sending, sending.plan.ahead);
            }
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
            if (!core.claim_as_sender(message)) {  // we came late: the receiver copies, or answers
                Result<wire::ClearToSend> again = co_await message.answers.next();
                if (message.finished.done() || !again.ok()) {
                    status = message.finished.done() ? message.finished.status() : again.status();
                    break;
                }
                adopt(sending, *again);
                answered = true;
                continue;
            }
            status = co_await put_by_ipc(executor, sending);
            const bool closed = status.error_class() == MPI_ERR_PENDING;
            const bool not_done = closed || status.error_class() == MPI_ERR_UNSUPPORTED_OPERATION;
            if (!status.ok() && !not_done) break;
            status = tell_in_place(sending, not_done ? 0 : sending.limit,
                                   closed ? wire::kClosedMeanwhile : wire::kRefused);
            if (not_done && status.ok()) continue;
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
    if (executor.hands_over()) co_await Yield(executor);
    Status status = co_await run(executor, core, message);
    // The receiver gave up while our last pieces were on their way: it waits to hear that nothing
    // of us is in flight.
    if (status.ok() && message.finished.done()) status = message.finished.status();
    if (!status.ok() && core.peer(message.peer).lost.ok()) {
        Sending sending{core, message, {}, {}, 0, 0, {}};
        Status told = tell_failure(core, message.peer, message.id, status, wire::For::receiver);
        if (!told.ok())
            log::error("rank {} was not told of a failed send: {}", message.peer, told.text());
    }
    release_source(core, message);
    Request& request = *message.request;
    core.remove_outgoing(message.id);
    core.finish_request(request, status);
    co_return success();
}

}  // namespace gantry::p2p
