// SPDX-License-Identifier: BSD-3-Clause
//
// The receiver's side of an ipc plan: reads the sender's device memory, or lets the sender write to
// ours and reads after all when the sender does not come (p2p/claims.hpp).
#include "p2p/protocols/receiving.hpp"

#include <algorithm>
#include <vector>

namespace gantry::p2p {
namespace {

// What we do about a message without its sender: a get, or anything else when none is possible.
plan::Choice choose_alone(const Receiving& receiving) {
    plan::Facts alone = receiving.facts;
    alone.sender_opens = false;
    plan::Tuning tuning = receiving.core.tuning;
    tuning.ipc_threshold = 1;  // pieces would need the sender
    return plan::choose(receiving.question, alone, tuning);
}

// The sender may be late: then we copy ourselves, where we can. What that costs more, to open its
// memory for one, is waited for first.
void claim_if_late(Receiving& receiving) {
    if (receiving.message.rts.claims == 0) return;
    const plan::Plan alone = choose_alone(receiving).plan;
    if (alone.protocol != plan::Protocol::ipc) return;
    const Nanoseconds dearer =
        std::max<Nanoseconds>(alone.expected - plan_of(receiving).expected, 0);
    receiving.core.claim_later(
        receiving.message.peer, receiving.message.rts.send_id,
        receiving.core.executor.now() + receiving.core.claim_wait() + dearer);
}

void plan_without_the_sender(Receiving& receiving) {
    receiving.claimed = true;
    receiving.choice = choose_alone(receiving);
    receiving.choice.plan.why = "the sender did not come to copy";
    receiving.core.explain.record(receiving.question, receiving.facts, receiving.choice,
                                  receiving.message.peer, true);
}

// Had the sender known our buffer before it sent, and mapped it.
bool put_would_be_better(const Receiving& receiving) {
    plan::Facts facts = receiving.facts;
    facts.announced = facts.put_open = true;
    const plan::Plan& plan = receiving.core.choose(receiving.question, facts).plan;
    return plan.protocol == plan::Protocol::ipc && plan.executor == plan::Executor::sender;
}

}  // namespace

Task<Status> get_by_ipc(Executor& executor, Receiving& receiving) {
    const device::IpcHandle handle = wire::decode(receiving.message.rts.handle);
    device::Device& device = receiving.core.device;
    const int gpu = copying_gpu(receiving, handle);
    Result<void*> mapped = device.open_memory(handle, gpu);
    if (!mapped.ok())
        co_return failure(MPI_ERR_UNSUPPORTED_OPERATION, "{}", mapped.status().text());
    receiving.core.peer(receiving.message.peer).mappings.got(handle.buffer_id);
    receiving.message.discard_chunks = true;
    // A sender that copies nothing ahead and expects to be read needs no answer but the end.
    Status status;
    const bool expected = wire::expects_get(receiving.message.rts.offer) || receiving.claimed;
    if (!expected) status = answer(receiving, wire::ClearToSend{});
    if (status.ok()) {
        const std::byte* source =
            static_cast<std::byte*>(*mapped) + (receiving.message.rts.address - handle.base);
        const bool inside = receiving.facts.takes_turns() && receiving.question.source.on_device();
        status = co_await direct_copy(executor, receiving.core, receiving.side.at(0), source,
                                      receiving.accepted, gpu, plan_of(receiving), inside);
    }
    // The memory could be mapped; the sender may have been told so, and keeps nothing for another way.
    if (status.error_class() == MPI_ERR_UNSUPPORTED_OPERATION)
        status = failure(MPI_ERR_OTHER, "{}", status.text());
    device.close_memory(handle, gpu);
    const bool alone = !receiving.facts.takes_turns() && receiving.side.on_device() &&
                       gpu == receiving.side.location.gpu;
    if (status.ok() && expected && !receiving.claimed && alone &&
        receiving.accepted == receiving.message.rts.envelope.bytes)
        receiving.core.peer(receiving.message.peer).last_get = {handle.buffer_id,
                                                                receiving.accepted,
                                                                gpu,
                                                                engine_of(plan_of(receiving)),
                                                                notice_of(plan_of(receiving)),
                                                                put_would_be_better(receiving)};
    while (!receiving.message.arrived.empty()) {  // copied ahead in vain
        Status returned = return_slot(receiving, receiving.message.arrived.pop());
    }
    if (status.ok())
        status = receiving.core.send(
            receiving.message.peer, wire::kFinish,
            wire::Finish{receiving.message.rts.send_id, MPI_SUCCESS, wire::For::sender});
    co_return status;
}

namespace {

// Waits for the sender's put, and what it says of it. `ahead`: the pieces that it had copied to
// slots before it knew.
Task<Status> await_put(Executor&, Receiving& receiving, std::vector<wire::Chunk>& ahead,
                       std::uint64_t buffer_id) {
    Mappings& mappings = receiving.core.peer(receiving.message.peer).mappings;
    while (true) {
        Result<wire::Chunk> next = co_await receiving.message.arrived.next();
        if (!next.ok()) co_return next.status();
        if (next->pool == wire::kClaimed) {
            plan_without_the_sender(receiving);
            co_return success();
        }
        if (next->pool == wire::kInPlace) {
            if (next->bytes == receiving.accepted) {
                mappings.put(buffer_id);
                co_return success();
            }
            if (next->unit == wire::kClosedMeanwhile) {
                mappings.put_closed(buffer_id);
                co_return failure(MPI_ERR_PENDING, "the sender closed its mapping meanwhile");
            }
            mappings.put_refused(buffer_id);
            co_return failure(MPI_ERR_UNSUPPORTED_OPERATION,
                              "the sender cannot map the receiver's device memory");
        }
        ahead.push_back(*next);
    }
}

}  // namespace

Task<Status> let_sender_put(Executor& executor, Receiving& receiving) {
    Result<device::IpcHandle> handle = receiving.core.device.export_memory(receiving.side.location);
    if (!handle.ok())
        co_return failure(MPI_ERR_UNSUPPORTED_OPERATION, "{}", handle.status().text());
    const wire::RequestToSend& rts = receiving.message.rts;
    Mappings& mappings = receiving.core.peer(receiving.message.peer).mappings;
    // Its descriptor is there before our answer is.
    if (handle->kind != device::IpcKind::legacy && !receiving.facts.put_open) {
        Status sent = receiving.core.device.send_descriptor(*handle, rts.inbox);
        if (!sent.ok()) {
            mappings.put_failed(handle->buffer_id);
            co_return failure(MPI_ERR_UNSUPPORTED_OPERATION, "{}", sent.text());
        }
    }
    // The sender will have mapped it: it is told when the program frees it.
    receiving.core.named.note(receiving.message.peer, *handle);
    wire::ClearToSend cts{};
    cts.sink_open = receiving.facts.put_open ? 1 : 0;
    cts.handle = wire::encode(*handle);
    cts.sink_offset = reinterpret_cast<std::uintptr_t>(receiving.side.at(0));
    Status status = answer(receiving, cts);
    GANTRY_CO_TRY(status);
    claim_if_late(receiving);
    std::vector<wire::Chunk> ahead;
    status = co_await await_put(executor, receiving, ahead, handle->buffer_id);
    // Nobody put: the sender goes on behind what it had copied ahead, if it is to send pieces after
    // all, and a get gives those back.
    const bool still_wanted = receiving.claimed || status.error_class() == MPI_ERR_PENDING ||
                              status.error_class() == MPI_ERR_UNSUPPORTED_OPERATION;
    for (const wire::Chunk& chunk : ahead) {
        if (still_wanted) {
            receiving.message.arrived.push(chunk);
            continue;
        }
        Status returned = return_slot(receiving, chunk);
        if (status.ok()) status = returned;
    }
    co_return status;
}

}  // namespace gantry::p2p
