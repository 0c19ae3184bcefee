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
//   cma:          the receiver reads the user's buffer through the kernel (FIN tells me)
//   exposed:      the receiver's transport gets it from the user's buffer; nobody says anything
//   ipc:          the receiver copies out of my device memory (FIN tells me), or I copy into its
#include "p2p/rendezvous_send.hpp"

#include "base/log.hpp"
#include "base/yield.hpp"
#include "p2p/offer.hpp"

#include <algorithm>
#include <memory>

namespace gantry::p2p {

Task<Status> await_verdict(Executor&, Sending& sending) {
    Result<wire::Cts> cts = co_await sending.message.answers.next();
    if (!cts.ok()) co_return cts.status();
    const Bytes offered_chunk = sending.plan.chunk;
    sending.message.cts = *cts;
    sending.plan = wire::decode(cts->verdict);
    if (sending.plan.chunk == 0) sending.plan.chunk = offered_chunk;
    sending.limit = cts->accepted;
    sending.answered = true;
    co_return success();
}

namespace {

// The offer was eager: nobody answers, the bytes follow as soon as they are out of the device.
Task<Status> send_payload(Executor& executor, Sending& sending) {
    Messages& messages = sending.messages;
    const Bytes bytes = sending.message.bytes;
    const wire::Payload head{sending.message.id};
    Result<SlotPool*> pool = messages.context.pools.own(transport::Pool::device_slots);
    GANTRY_CO_TRY(pool.status());
    transfer::HeldSlot slot;
    std::unique_ptr<std::byte[]> memory;
    std::byte* staging = nullptr;
    if (bytes <= (*pool)->largest()) {
        Result<Slot> granted = co_await (*pool)->acquire(executor, bytes, SlotUse::source);
        GANTRY_CO_TRY(granted.status());
        slot = transfer::HeldSlot(**pool, *granted);
        staging = slot.memory();
    } else {  // a limit above what a slot holds
        Result<std::unique_ptr<std::byte[]>> made =
            transfer::host_memory(bytes, "a device message");
        GANTRY_CO_TRY(made.status());
        memory = std::move(*made);
        staging = memory.get();
    }
    Completion copied(executor);
    transfer::copy_to_slot(messages.context, sending.staging(), 0, bytes, staging,
                           transfer::HostCopy::cached, copied);
    Status status = co_await copied;
    // Whoever gave up meanwhile said so there.
    if (status.ok() && sending.message.finished.done()) status = sending.message.finished.status();
    if (status.ok())
        status = messages.send(sending.message.peer, wire::kPayload, head,
                               transport::ConstSpan(staging, bytes));
    slot.give_back();
    if (status.ok() && sending.message.synchronous) status = co_await sending.message.finished;
    co_return status;
}

// Whether we still are the ones to copy.
bool claims_for_sender(const Sending& sending) {
    const Outgoing& message = sending.message;
    return !message.claimable ||
           transfer::GpuArbiter::claim(sending.peer(), message.id, transfer::Claimant::sender);
}

Task<Status> run(Executor& executor, Messages& messages, Outgoing& message) {
    Sending sending{
        messages, message, Side{message.buffer, message.location}, message.offer, message.bytes, 0,
        {},       false};
    const bool shared = sending.peer().facts.shared_memory;
    Status status;
    if (message.exposed) {
        status = co_await message.got;
        if (status.error_class() != MPI_ERR_PENDING) co_return status;
    }
    if (sending.plan.protocol == plan::Protocol::eager) {
        status = co_await send_payload(executor, sending);
        if (status.ok()) messages.counted.staged += message.bytes;
        co_return status;
    }
    bool verdict_needed = true;
    if (sending.plan.protocol == plan::Protocol::pipeline && sending.plan.ahead > 0 &&
        message.bytes > 0) {
        if (shared) {
            status = co_await send_shared(executor, sending);
            if (!status.ok() && !sending.answered) {
                // The receiver may be reading our buffer already, by another protocol: only its
                // verdict says whether this matters.
                Status verdict = co_await await_verdict(executor, sending);
                GANTRY_CO_TRY(verdict);
            }
            if (sending.plan.protocol == plan::Protocol::pipeline) GANTRY_CO_TRY(status);
            // Everything is out of the user's buffer: done, unless the program asked to know that
            // it was matched.
            if (sending.offset >= message.bytes && !message.synchronous) verdict_needed = false;
        } else {
            // Each costs the processor microseconds, and the request waits for the first alone.
            stage_ahead(sending, 1);
            if (sending.plan.ahead > 1) {
                co_await Yield(executor);
                stage_ahead(sending, sending.plan.ahead);
            }
        }
    }
    while (verdict_needed) {
        if (!sending.answered) {
            status = co_await await_verdict(executor, sending);
            if (!status.ok()) break;
        }
        const plan::Protocol protocol = sending.plan.protocol;
        if (protocol == plan::Protocol::pipeline && shared) {
            status = co_await send_shared(executor, sending);
            break;
        }
        if (protocol == plan::Protocol::pipeline || protocol == plan::Protocol::rdma) {
            status = co_await send_puts(executor, sending);
            break;
        }
        if (protocol == plan::Protocol::ipc && sending.plan.executor == plan::Executor::sender) {
            if (!claims_for_sender(sending)) {  // we came late: the receiver copies, or answers
                status = co_await await_verdict(executor, sending);
                if (message.finished.done()) status = message.finished.status();
                if (message.finished.done() || !status.ok()) break;
                continue;
            }
            sending.answered = false;
            status = co_await put_by_ipc(executor, sending);
            const bool closed = status.error_class() == MPI_ERR_PENDING;
            const bool not_done = closed || status.error_class() == MPI_ERR_UNSUPPORTED_OPERATION;
            if (!status.ok() && !not_done) break;
            std::uint32_t why = closed ? wire::kClosedMeanwhile : wire::kRefused;
            // All of that GPU's memory would be.
            if (not_done && !closed && keeps_away(sending)) why = wire::kKeptAway;
            status = tell_in_place(sending, not_done ? 0 : sending.limit, why);
            if (not_done && status.ok()) continue;
            break;
        }
        // The receiver copies out of our memory, or from our buffer in this very process. (Its
        // FIN alone may say so: Messages::on_fin_at_sender.)
        status = co_await message.finished;
        break;
    }
    if (!sending.ahead.empty()) {
        Result<SlotPool*> pool = messages.context.pools.own(transport::Pool::device_slots);
        Status dropped = co_await drop_ahead(executor, sending, **pool);
    }
    if (status.ok())
        messages.counted.staged += plan::staged_bytes(sending.plan, sending.limit, false);
    co_return status;
}

}  // namespace

Task<Status> send_rendezvous(Executor& executor, Messages& messages, Outgoing& message) {
    if (executor.hands_over()) co_await Yield(executor);
    Status status = co_await run(executor, messages, message);
    // The receiver gave up while our last pieces were on their way: it waits to hear that nothing
    // of us is in flight.
    if (status.ok() && message.finished.done()) status = message.finished.status();
    if (message.withdrawn != nullptr)
        status = co_await settle_cancel(executor, message, std::move(status));
    if (!status.ok()) tell_failure(messages, message.peer, message.id, status, wire::For::receiver);
    release_source(messages, message);
    Request& request = *message.request;
    messages.remove(message);
    messages.finish_request(request, status);
    co_return success();
}

}  // namespace gantry::p2p
