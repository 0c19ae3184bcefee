// SPDX-License-Identifier: BSD-3-Clause
//
// The receiver's side of a rendezvous: sees both ends, asks the planner for the verdict, answers
// with it, and takes the bytes in. When a plan turns out impossible (a mapping is refused) the
// planner is asked again without it: everything still works, staged.
#include "base/log.hpp"
#include "base/yield.hpp"
#include "p2p/protocols/invest.hpp"
#include "p2p/protocols/receiving.hpp"
#include "p2p/windows.hpp"

#include <algorithm>
#include <vector>

namespace gantry::p2p {
plan::GpuUser last_user(Core& core, const wire::RequestToSend& rts, int gpu) {
    const Nanoseconds mine = core.shared_gpu(gpu).used();
    const auto its = static_cast<Nanoseconds>(rts.gpu_used);
    if (mine == 0 && its == 0) return plan::GpuUser::unknown;
    return its > mine ? plan::GpuUser::sender : plan::GpuUser::receiver;
}

int copying_gpu(const Receiving& receiving, const device::IpcHandle& handle) {
    if (receiving.side.on_device()) return receiving.side.location.gpu;
    return std::max(receiving.core.device.gpu_of(handle.gpu), 0);
}

Status answer(Receiving& receiving, wire::ClearToSend cts, const transport::RemoteKey& key,
              const std::vector<std::uint32_t>& grants) {
    cts.send_id = receiving.message.rts.send_id;
    cts.verdict = wire::encode(plan_of(receiving));
    cts.accepted = receiving.accepted;
    cts.direct_next = receiving.direct_next;
    if (receiving.wants_descriptor) {
        cts.wanted = receiving.message.rts.handle.buffer_id;
        cts.inbox = receiving.core.device.descriptor_inbox();
    }
    receiving.answered = true;
    cts.key_bytes = key.length;
    std::vector<std::byte> payload(key.view().begin(), key.view().end());
    const auto granted = std::as_bytes(std::span(grants));
    payload.insert(payload.end(), granted.begin(), granted.end());
    return receiving.core.send(receiving.message.peer, wire::kClearToSend, cts, payload);
}

Status return_slot(Receiving& receiving, const wire::Chunk& chunk) {
    return receiving.core.send(receiving.message.peer, wire::kCredit, wire::credit_for(chunk));
}

namespace {

constexpr int kChunksBetweenYields = 4;

// Of a piece that was taken out. Of our own slots nobody needs one more when all has come.
Status return_emptied(Receiving& receiving, const wire::Chunk& chunk) {
    const bool needed = receiving.shared || receiving.taken < receiving.accepted;
    return needed ? return_slot(receiving, chunk) : success();
}

// True when the offer already put the whole message into slots: the sender may be done and must not
// be asked for anything else.
bool all_ahead(const Receiving& receiving) {
    return receiving.shared &&
           wire::all_ahead(receiving.message.rts.offer, receiving.message.envelope.bytes);
}

// On a GPU that nobody of the two used lately: shall this process take it from now on?
void consider_taking_the_gpu(Receiving& receiving) {
    plan::Facts taken = receiving.facts;
    taken.last_user = plan::GpuUser::receiver;
    const plan::Choice direct = receiving.core.choose(receiving.question, taken);
    const Nanoseconds saving = plan_of(receiving).expected - direct.plan.expected;
    if (direct.plan.protocol != plan::Protocol::ipc ||
        direct.plan.executor != plan::Executor::receiver)
        return;
    SharedGpu& gpu = receiving.core.shared_gpu(receiving.side.location.gpu);
    if (!gpu.invest(saving, receiving.facts.sink_gpu.queue_turn, receiving.core.executor.now()))
        return;
    receiving.facts = taken;
    receiving.choice = direct;
}

void decide(Receiving& receiving) {
    const wire::RequestToSend& rts = receiving.message.rts;
    receiving.choice = receiving.core.choose(receiving.question, receiving.facts);
    if (receiving.facts.takes_turns() && receiving.facts.last_user == plan::GpuUser::unknown &&
        !receiving.question.already_staged)
        consider_taking_the_gpu(receiving);
    // The sender need not copy anything ahead of the verdict from this allocation: it is better
    // copied directly.
    const bool direct = plan_of(receiving).protocol == plan::Protocol::ipc;
    receiving.direct_next = direct ? rts.handle.buffer_id : 0;
    if (direct && !all_ahead(receiving)) return;
    Mappings& mappings = receiving.core.peer(receiving.message.peer).mappings;
    mappings.staged(rts.handle, receiving.side.location,
                    {receiving.facts.ipc_open, receiving.facts.put_open});
    receiving.wants_descriptor = !receiving.facts.descriptor &&
                                 would_get(receiving.core, receiving.question, receiving.facts);
    if (!all_ahead(receiving)) return;
    // This time it lies in slots.
    receiving.question.already_staged = true;
    receiving.question.started_chunk = rts.offer.chunk;
    receiving.choice = receiving.core.choose(receiving.question, receiving.facts);
}

// Takes one piece out of its slot and gives the slot back (shared: to the sender's pool; put:
// granted to this message again).
Task<Status> drain(Executor& executor, Receiving& receiving, wire::Chunk chunk,
                   const std::byte* slot) {
    std::byte* to = receiving.side.at(chunk.offset);  // unless it is strided
    const plan::CopyEngine engine = plan_of(receiving).sink_engine;
    const bool by_window =
        engine == plan::CopyEngine::window &&
        write_by_window(receiving.core, receiving.side.location, to, {slot, chunk.bytes});
    // Without the window that was planned with, what is right on a shared GPU is right on any.
    const bool two_rows =
        engine == plan::CopyEngine::copy_engine_2d || engine == plan::CopyEngine::window;
    Status status;
    if (by_window)
        status = success();
    else if (!receiving.side.contiguous())
        status = co_await unpack_to_device(
            executor, receiving.core, receiving.side.piece(chunk.offset, chunk.bytes), slot,
            movers_of(receiving.core, engine), notice_of(plan_of(receiving)));
    else if (receiving.side.on_device())
        status = co_await device_copy(
            executor, receiving.core, to, slot, chunk.bytes, receiving.side.location.gpu,
            two_rows ? device::Engine::h2d_2d : device::Engine::h2d, notice_of(plan_of(receiving)));
    else
        status = co_await shared_copy(executor, receiving.core, to, slot, chunk.bytes);
    Status returned = return_emptied(receiving, chunk);
    if (status.ok()) status = returned;
    co_return status;
}

// Chunks in slots until everything accepted is in place, in whatever order they arrive.
Task<Status> take_chunks(Executor& executor, Receiving& receiving) {
    Scope pieces(executor);
    Status status;
    int since_yield = 0;
    while (receiving.taken < receiving.accepted && !pieces.cancelled()) {
        Result<wire::Chunk> next = co_await receiving.message.arrived.next();
        if (!next.ok()) {
            status = next.status();
            break;
        }
        wire::Chunk chunk = *next;
        if (chunk.offset >= receiving.accepted) {  // past the room of a truncated receive
            status = return_slot(receiving, chunk);
            if (!status.ok()) break;
            continue;
        }
        chunk.bytes = std::min(chunk.bytes, receiving.accepted - chunk.offset);
        receiving.taken += chunk.bytes;
        const std::byte* slot = nullptr;
        if (receiving.shared) {
            Result<std::byte*> mapped = receiving.core.peer_slot(
                receiving.message.peer, static_cast<transport::Pool>(chunk.pool), chunk.slot_offset,
                receiving.side.on_device());
            if (!mapped.ok()) {
                status = mapped.status();
                break;
            }
            slot = *mapped;
        } else {
            Result<SlotPool*> pool = receiving.core.pool(transport::Pool::device_slots);
            slot = (*pool)->memory().data() + chunk.slot_offset;
        }
        const auto pool = static_cast<transport::Pool>(chunk.pool);
        if (receiving.side.on_device() ||
            copies_shared(receiving.core, receiving.side, pool, receiving.accepted)) {
            pieces.spawn(drain(executor, receiving, chunk, slot));
            continue;
        }
        copy_in(receiving.side, chunk.offset, chunk.bytes, slot,
                stores_out_of_slots(pool, receiving.accepted));
        status = return_emptied(receiving, chunk);
        if (!status.ok()) break;
        if (++since_yield % kChunksBetweenYields == 0) co_await Yield(executor);
    }
    Status joined = co_await pieces.join(executor);
    if (status.ok()) status = joined;
    co_return status;
}

// Put wire, through our slots: lends as many as the plan is deep (at least one; more than are free
// now are not waited for).
Task<Status> take_puts_in_slots(Executor& executor, Receiving& receiving) {
    Result<SlotPool*> pool = receiving.core.pool(transport::Pool::device_slots);
    if (!pool.ok()) co_return pool.status();
    plan::Plan& plan = receiving.choice.plan;
    plan.chunk = std::clamp<Bytes>(plan.chunk, kDeviceSlotUnit, (*pool)->largest(SlotUse::sink));
    const Bytes ahead_chunk =
        receiving.message.rts.offer.chunk;  // pieces copied ahead keep the offer's size
    const Bytes slot_bytes =
        std::max(plan.chunk, std::min(ahead_chunk, (*pool)->largest(SlotUse::sink)));
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
    const transport::Transport& transport = *receiving.core.peer(receiving.message.peer).transport;
    Result<transport::Region> region = receiving.core.pool_region(receiving.message.peer);
    if (region.ok()) {
        status = answer(receiving, wire::ClearToSend{}, transport.key(*region), grants);
    } else {
        status = region.status();
    }
    if (status.ok()) status = co_await take_chunks(executor, receiving);
    if (!status.ok() && receiving.answered &&
        receiving.core.peer(receiving.message.peer).lost.ok() &&
        !receiving.message.finished.done()) {
        // The sender may still be writing into our slots: they are ours again only when it says
        // that it stopped.
        Status told = tell_failure(receiving.core, receiving.message.peer,
                                   receiving.message.rts.send_id, status, wire::For::sender);
        if (told.ok()) {
            Status stopped = co_await receiving.message.finished;
        }
    }
    for (const Slot& slot : slots)
        (*pool)->release(slot);
    co_return status;
}

// Put wire, straight into the user's buffer. MPI_ERR_UNSUPPORTED_OPERATION: it cannot be
// registered, and nobody was told anything yet.
Task<Status> take_puts_directly(Executor&, Receiving& receiving) {
    transport::Transport& transport = *receiving.core.peer(receiving.message.peer).transport;
    // A receive without room still answers its sender; its buffer may be null or on a device that
    // was never asked about.
    std::byte no_room{};
    std::byte* sink = receiving.accepted > 0 ? receiving.side.at(0) : &no_room;
    Result<transport::Region> region = transport.register_memory(
        extent_of(receiving.side.location, sink, std::max<Bytes>(receiving.accepted, 1)));
    if (!region.ok())
        co_return failure(MPI_ERR_UNSUPPORTED_OPERATION, "{}", region.status().text());
    wire::ClearToSend cts{};
    cts.sink_offset = static_cast<Bytes>(sink - static_cast<std::byte*>(region->address));
    Status status = answer(receiving, cts, transport.key(*region));
    if (status.ok()) {
        status = co_await receiving.message.finished;
        // An error of the sender's is not a refusal of ours.
        if (status.error_class() == MPI_ERR_UNSUPPORTED_OPERATION)
            status = failure(MPI_ERR_OTHER, "{}", status.text());
    }
    transport.release_memory(*region);
    if (status.ok() && receiving.side.on_device() && receiving.accepted > 0)
        status = receiving.core.device.settle_network_writes(receiving.side.location.gpu);
    co_return status;
}

// The transport writes what the sender lent straight to its place.
Task<Status> fetch_loan(Executor& executor, Receiving& receiving) {
    Completion fetched(executor);
    receiving.core.peer(receiving.message.peer)
        .transport->fetch(receiving.message.peer, receiving.message.rts.send_id,
                          receiving.side.at(0), receiving.accepted, fetched);
    Status status = co_await fetched;
    co_return status;
}

// Packed on the host where the two ends have no copy between them: a strided source and a strided
// or device sink, or a device source and a strided sink.
bool is_packed_between(const Side& source, const Side& sink) {
    return source.contiguous() ? source.on_device() && !sink.contiguous()
                               : source.on_device() || sink.on_device() || !sink.contiguous();
}

Task<Status> move_locally(Executor& executor, Core& core, Side source, Bytes source_bytes,
                          Side sink, Bytes accepted) {
    std::unique_ptr<std::byte[]> packed;
    Status status;
    if (is_packed_between(source, sink)) {
        Result<std::unique_ptr<std::byte[]>> memory =
            host_memory(source_bytes, "a strided message to this rank itself");
        if (!memory.ok()) co_return memory.status();
        packed = std::move(*memory);
        if (!source.on_device())
            copy_out(source, 0, source_bytes, packed.get());
        else if (!source.contiguous())
            status = co_await pack_from_device(executor, core, source.piece(0, source_bytes),
                                               packed.get(), plan::Movers::copy_engines);
        else
            status = co_await device_copy(executor, core, packed.get(), source.at(0), source_bytes,
                                          source.location.gpu, device::Engine::d2h);
        GANTRY_CO_TRY(status);
        source = Side{Buffer{.address = packed.get()}, device::Location{}};
    }
    if (sink.on_device() && !sink.contiguous()) {
        status = co_await unpack_to_device(executor, core, sink.piece(0, accepted), source.at(0),
                                           plan::Movers::copy_engines);
    } else if (source.on_device() || sink.on_device()) {
        const int gpu =
            std::max({source.on_device() ? source.location.gpu : -1, sink.location.gpu, 0});
        status = co_await device_copy(executor, core, sink.at(0), source.at(0), accepted, gpu,
                                      device::Engine::automatic);
    } else if (source.contiguous()) {
        copy_in(sink, 0, accepted, source.at(0));
    } else {
        copy_out(source, 0, accepted, sink.at(0));
    }
    co_return status;
}

// Both ends in this process.
Task<Status> copy_locally(Executor& executor, Receiving& receiving) {
    Core& core = receiving.core;
    Outgoing* outgoing = core.outgoing(receiving.message.rts.send_id);
    if (outgoing == nullptr)
        co_return failure(MPI_ERR_INTERN, "a message to this rank itself lost its sender");
    const Side source{outgoing->buffer, outgoing->location};
    Status status = co_await move_locally(executor, core, source, outgoing->bytes, receiving.side,
                                          receiving.accepted);
    outgoing = core.outgoing(receiving.message.rts.send_id);
    if (status.ok()) status = answer(receiving, wire::ClearToSend{});
    if (outgoing != nullptr && !outgoing->finished.done()) outgoing->finished.complete(status);
    co_return status;
}

Task<Status> run(Executor& executor, Receiving& receiving) {
    Core& core = receiving.core;
    Incoming& message = receiving.message;
    if (wire::is_eager(message.rts.offer)) {
        Status taken =
            co_await take_payload(executor, core, message, receiving.side, receiving.accepted);
        co_return taken;
    }
    Request& request = *message.request;
    const device::IpcHandle handle = wire::decode(message.rts.handle);
    plan::Question& question = receiving.question;
    question.bytes = receiving.accepted;
    question.source.kind = static_cast<device::MemoryKind>(message.rts.source_kind);
    question.source.ipc = handle.kind;
    question.source.contiguous = message.rts.contiguous != 0;
    question.sink = core.end_of(request.location, request.buffer);
    question.sink_known = true;
    question.synchronous = message.rts.synchronous != 0;
    question.budget = false;
    const bool source_on_device = question.source.on_device();
    receiving.facts = core.facts_for(message.peer, request.location, false,
                                     source_on_device ? &handle.gpu : nullptr);
    receiving.facts.lent =
        wire::lends(message.rts.offer) && receiving.accepted == message.rts.envelope.bytes;
    receiving.facts.source_reach = static_cast<plan::Reach>(message.rts.source_reach);
    receiving.facts.sender_opens = message.rts.uses_driver != 0;
    receiving.facts.receiver_opens = core.device.active() && core.device.gpu_of(handle.gpu) >= 0;
    look_at_mappings(core, message, request.location, copying_gpu(receiving, handle), question,
                     receiving.facts);
    if (receiving.facts.takes_turns() && source_on_device)
        receiving.facts.last_user = last_user(core, message.rts, request.location.gpu);
    receiving.shared = receiving.facts.peer.shared_memory;
    receiving.facts.sink_window =
        receiving.side.on_device() &&
        wants_sink_window(core, question, receiving.facts, request.location, receiving.side.at(0));
    Status status;
    while (true) {
        decide(receiving);
        core.explain.record(question, receiving.facts, receiving.choice, message.peer, true);
        const plan::Plan& plan = plan_of(receiving);
        if (receiving.facts.peer.self) {
            status = co_await copy_locally(executor, receiving);
        } else if (plan.protocol == plan::Protocol::ipc) {
            status = success();
            if (plan.executor == plan::Executor::sender)
                status = co_await let_sender_put(executor, receiving);
            // `plan` has changed when the sender did not come.
            if (status.ok() && plan.executor == plan::Executor::receiver)
                status = co_await get_by_ipc(executor, receiving);
            if (status.error_class() == MPI_ERR_UNSUPPORTED_OPERATION) {
                log::info("p2p: message from rank {} is staged: {}", message.peer, status.text());
                (plan.executor == plan::Executor::receiver ? question.source : question.sink).ipc =
                    device::IpcKind::none;
                // The sender will not put any more, whatever it is told.
                if (receiving.claimed) question.sink.ipc = device::IpcKind::none;
                continue;
            }
            if (status.error_class() == MPI_ERR_PENDING) {  // the mapping has to repay itself again
                look_at_mappings(core, message, request.location, copying_gpu(receiving, handle),
                                 question, receiving.facts);
                continue;
            }
        } else if (plan.protocol == plan::Protocol::rdma &&
                   plan.executor == plan::Executor::receiver) {
            status = co_await fetch_loan(executor, receiving);
        } else if (receiving.shared) {
            remember_taken(receiving);
            status = answer(receiving, wire::ClearToSend{});
            if (status.ok()) status = co_await take_chunks(executor, receiving);
        } else if (plan.sink_stage == plan::Stage::slot) {
            status = co_await take_puts_in_slots(executor, receiving);
        } else {
            status = co_await take_puts_directly(executor, receiving);
            if (!receiving.answered && status.error_class() == MPI_ERR_UNSUPPORTED_OPERATION &&
                receiving.facts.sink_reach != plan::Reach::nothing) {
                log::info("p2p: message from rank {} is staged: {}", message.peer, status.text());
                receiving.facts.sink_reach = plan::Reach::nothing;
                continue;
            }
        }
        break;
    }
    co_return status;
}

}  // namespace

Task<Status> receive_rendezvous(Executor& executor, Core& core, Incoming& message) {
    if (executor.hands_over()) co_await Yield(executor);
    Request& request = *message.request;
    const Status truncation = request.status;
    Receiving receiving{.core = core,
                        .message = message,
                        .side = Side{request.buffer, request.location},
                        .accepted = request.outcome.bytes};
    Status status = co_await run(executor, receiving);
    // Past the room of a truncated receive, or behind a failure; what comes later goes back by
    // itself.
    while (receiving.shared && !message.arrived.empty() && core.peer(message.peer).lost.ok()) {
        const wire::Chunk unused = message.arrived.pop();
        Status returned = unused.units > 0 ? return_slot(receiving, unused) : success();
        if (status.ok()) status = std::move(returned);
    }
    if (!status.ok() && core.peer(message.peer).lost.ok() && !message.finished.done()) {
        Status told =
            tell_failure(core, message.peer, message.rts.send_id, status, wire::For::sender);
        if (!told.ok())
            log::error("rank {} was not told of a failed receive: {}", message.peer, told.text());
    }
    core.remove_incoming(message.peer, message.rts.send_id);
    core.finish_request(request, status.ok() ? truncation : status);
    co_return success();
}

}  // namespace gantry::p2p
