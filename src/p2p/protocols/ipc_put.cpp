// SPDX-License-Identifier: BSD-3-Clause
//
// The sender writes to the receiver's device memory (CUDA IPC), as the verdict says:
//
//   sender                                    receiver
//     | --- RTS ---------------------------->  |  exports its buffer
//     | <-- CTS [handle, address] -----------  |
//     |  opens the memory, copies              |  waits; may copy itself when the sender is late
//     | --- chunk [in place] --------------->  |
//
// Out of a strided buffer the copy is one kernel, which packs into the mapped memory. What the receiver
// names is memory of its GPU that is Gantry's own where its buffer is strided, too: it unpacks that.
//
// Both could copy, and only one may: who takes the message's claim word does (transfer/claim_words.hpp).
#include "base/log.hpp"
#include "p2p/rendezvous_receive.hpp"
#include "p2p/rendezvous_send.hpp"
#include "transfer/bounce_buffer.hpp"
#include "transfer/local_move.hpp"
#include "transfer/mapping.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace gantry::p2p {
namespace {

// What we do about a message without its sender: a get, or anything else when none is possible.
plan::Choice choose_alone(const Receiving& receiving) {
    plan::Question alone = receiving.verdict.question;
    alone.sender_absent = true;
    return receiving.context().selections.select(alone, receiving.verdict.facts).choice;
}

// The sender may be late: then we copy ourselves, where we can. What that costs more, to open its
// memory for one, is waited for first.
void claim_if_late(Receiving& receiving) {
    if (receiving.message.rts.claims == 0) return;
    const plan::Plan alone = choose_alone(receiving).plan;
    if (alone.protocol != plan::Protocol::ipc) return;
    const Nanoseconds dearer = std::max<Nanoseconds>(alone.expected - receiving.plan().expected, 0);
    receiving.context().arbiter.claims_later().wait(
        receiving.message.peer, receiving.message.rts.send_id,
        receiving.messages.executor.now() + receiving.context().config.claim_wait + dearer);
}

void plan_without_the_sender(Receiving& receiving) {
    receiving.claimed = true;
    receiving.verdict.choice = choose_alone(receiving);
    receiving.verdict.choice.plan.why = "the sender did not come to copy";
    receiving.messages.explain.record(receiving.verdict.question, receiving.verdict.choice,
                                      receiving.message.peer, true);
}

// Waits for the sender's put, and what it says of it. `ahead`: the pieces that it had copied to
// slots before it knew.
Task<Status> await_put(Executor&, Receiving& receiving, std::vector<wire::Chunk>& ahead,
                       std::uint64_t buffer_id) {
    transfer::RemoteMemory& memory = receiving.sender().memory;
    const bool unpacks = !receiving.side.contiguous();
    const std::uint64_t packed = unpacks ? packed_puts(receiving.side.location) : buffer_id;
    while (true) {
        Result<wire::Chunk> next = co_await receiving.message.arrived.next();
        if (!next.ok()) co_return next.status();
        if (next->pool == wire::kClaimed) {
            plan_without_the_sender(receiving);
            co_return success();
        }
        if (next->pool == wire::kInPlace) {
            if (next->bytes == receiving.accepted) {
                memory.put(buffer_id);
                if (unpacks) memory.put(packed);
                co_return success();
            }
            if (next->unit == wire::kClosedMeanwhile) {
                memory.put_closed(buffer_id);
                co_return failure(MPI_ERR_PENDING, "the sender closed its mapping meanwhile");
            }
            if (next->unit == wire::kKeptAway) memory.put_kept_away();
            memory.put_refused(buffer_id);
            if (unpacks) memory.put_refused(packed);
            co_return failure(MPI_ERR_UNSUPPORTED_OPERATION,
                              "the sender cannot map the receiver's device memory");
        }
        ahead.push_back(*next);
    }
}

// Packed bytes that a sender has put on our GPU come where they belong.
Task<Status> unpack_put(Executor& executor, Receiving& receiving, std::byte* packed) {
    const Side& sink = receiving.side;
    Status status = co_await transfer::move_packed(
        executor, receiving.context(), sink, packed, sink.location.gpu, receiving.accepted,
        transfer::Way::to_device, transfer::notice_of(receiving.plan()));
    if (status.error_class() == MPI_ERR_UNSUPPORTED_OPERATION)
        status = failure(MPI_ERR_OTHER, "{}", status.text());
    co_return status;
}

// Our own buffer's GPU copies, else the receiver's if we see it.
int gpu_of_put(const Sending& sending) {
    return sending.side.on_device()
               ? sending.side.location.gpu
               : transfer::Mapping::gpu_for(sending.messages.device, sending.message.cts.handle);
}

}  // namespace

Task<Status> let_sender_put(Executor& executor, Receiving& receiving) {
    device::Location sink = receiving.side.location;
    std::optional<transfer::BounceBuffer> packed;
    if (!receiving.side.contiguous()) {
        device::Device& device = receiving.messages.device;
        packed.emplace(device, receiving.side.buffer.data(), receiving.accepted,
                       transfer::BounceBuffer::Place::gpu);
        if (packed->data() == nullptr)
            co_return failure(MPI_ERR_UNSUPPORTED_OPERATION, "no device memory to pack into");
        Result<device::Location> there = device.classify(packed->data(), receiving.accepted);
        GANTRY_CO_TRY(there.status());
        sink = *there;
    }
    Result<device::IpcHandle> handle = receiving.messages.device.export_memory(sink);
    if (!handle.ok())
        co_return failure(MPI_ERR_UNSUPPORTED_OPERATION, "{}", handle.status().text());
    const wire::Rts& rts = receiving.message.rts;
    transfer::RemoteMemory& memory = receiving.sender().memory;
    const bool open =
        packed ? memory.is_put_open(handle->buffer_id) : receiving.verdict.facts.put_open;
    // Its descriptor is there before our answer is.
    if (handle->kind != device::IpcKind::legacy && !open) {
        Status sent = receiving.messages.device.send_descriptor(*handle, rts.inbox);
        if (!sent.ok()) {
            memory.put_failed(handle->buffer_id);
            co_return failure(MPI_ERR_UNSUPPORTED_OPERATION, "{}", sent.text());
        }
    }
    // The sender will have mapped it: it is told when the program frees it.
    receiving.context().exports.note(receiving.message.peer, *handle);
    wire::Cts cts{};
    cts.sink_open = open ? 1 : 0;
    cts.handle = *handle;
    cts.sink_offset =
        reinterpret_cast<std::uintptr_t>(packed ? packed->bytes() : receiving.side.at(0));
    Status status = answer(receiving, cts);
    GANTRY_CO_TRY(status);
    claim_if_late(receiving);
    std::vector<wire::Chunk> ahead;
    status = co_await await_put(executor, receiving, ahead, handle->buffer_id);
    if (packed && status.ok() && !receiving.claimed)
        status = co_await unpack_put(executor, receiving, packed->bytes());
    if (packed && !receiving.sender().lost.ok()) packed->leave();
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

bool keeps_away(const Sending& sending) {
    return sending.messages.device.is_kept_away(gpu_of_put(sending),
                                                sending.message.cts.handle.gpu);
}

Task<Status> put_by_ipc(Executor& executor, Sending& sending) {
    const wire::Cts& cts = sending.message.cts;
    const device::IpcHandle& handle = cts.handle;
    device::Device& device = sending.messages.device;
    const int gpu = gpu_of_put(sending);
    // Room was needed for other mappings: this one has to repay itself again.
    if (cts.sink_open != 0 && device.access(handle, gpu) != device::Access::open)
        co_return failure(MPI_ERR_PENDING, "the mapping was closed meanwhile");
    Result<transfer::Mapping> mapping = transfer::Mapping::open(device, handle, gpu);
    GANTRY_CO_TRY(mapping.status());
    std::byte* const sink = mapping->at(cts.sink_offset);
    const bool inside = sending.side.on_device() && device.gpu_of(handle.gpu) == gpu &&
                        device.gpu_facts(gpu).queue_turn > 0;
    Status status;
    if (sending.side.contiguous())
        status = co_await transfer::direct_copy(executor, sending.messages.context, sink,
                                                sending.side.at(0), sending.limit, gpu,
                                                sending.plan, inside);
    else
        status = co_await transfer::move_packed(
            executor, sending.context(), sending.side, sink, device.gpu_of(handle.gpu),
            sending.limit, transfer::Way::from_device, transfer::notice_of(sending.plan));
    co_return status;
}

Status tell_in_place(Sending& sending, Bytes bytes, std::uint32_t why) {
    return sending.messages.send(
        sending.message.peer, wire::kChunk,
        wire::Chunk{sending.message.id, 0, bytes, 0, why, 0, wire::kInPlace});
}

}  // namespace gantry::p2p
