// SPDX-License-Identifier: BSD-3-Clause
//
// Messages that come without a verdict: with their envelope, or (small, from a device of another node)
// right behind their RTS. Who has no receive posted for one keeps its bytes.
#include "base/log.hpp"
#include "p2p/bar_copies.hpp"
#include "p2p/eager.hpp"
#include "transfer/mover.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace gantry::p2p {
namespace {

using transfer::Side;

// Who takes bytes that are held: a receive's own processor, a copy engine, or a kernel, which reaches
// only page-locked memory; rows of other memory would be the driver's to stage.
enum class HeldFor : std::uint8_t { processor, copy_engine, page_locked };

HeldFor held_for(const Request& receive) {
    if (!receive.location.on_device()) return HeldFor::processor;
    return receive.buffer.contiguous() ? HeldFor::copy_engine : HeldFor::page_locked;
}

// A copy of what a transport shows only for the moment; null data: no memory.
UnexpectedBuffer hold(transfer::Context& context, transport::ConstSpan bytes, HeldFor whom) {
    UnexpectedBuffer held;
    if (whom == HeldFor::page_locked ||
        (whom == HeldFor::copy_engine && bytes.size() >= plan::kKeptInSlotsFrom)) {
        held = UnexpectedBuffer(
            transfer::HeldSlot::try_take(context.pools, bytes.size(), SlotUse::sink));
    }
    if (held.data() == nullptr)
        held = UnexpectedBuffer(std::unique_ptr<std::byte[]>(
            new (std::nothrow) std::byte[std::max<Bytes>(bytes.size(), 1)]));
    if (held.data() != nullptr && !bytes.empty())
        std::memcpy(held.data(), bytes.data(), bytes.size());
    return held;
}

// Out of the ring, which its sender has filled as it fills slots: a long one is timed.
void copy_eager(transfer::HostReads& measured, transfer::Endpoint& sender, std::byte* to,
                transport::ConstSpan payload) {
    const Nanoseconds began = measured.begins(sender, payload.size());
    std::memcpy(to, payload.data(), payload.size());
    if (began != 0) [[unlikely]]
        measured.copied_from_slot(sender, payload.size(), began);
}

// A payload in memory of ours, into device memory. Where another rank uses the GPU, too, a kernel would
// wait for a time slice, and so would a contiguous copy, which the device makes in rows there
// (device/neighbours.hpp).
Task<Status> copy_in_by_device(Executor& executor, transfer::Context& context, Side side,
                               const std::byte* payload, Bytes bytes) {
    const int gpu = side.location.gpu;
    if (side.contiguous())
        return transfer::device_copy(executor, context, side.at(0), payload, bytes, gpu,
                                     device::Engine::h2d);
    const bool sliced = context.arbiter.is_time_sliced(gpu);
    return transfer::unpack_to_device(
        executor, context, side.piece(0, bytes), payload,
        transfer::movers_of(context,
                            sliced ? plan::CopyEngine::copy_engine_2d : plan::CopyEngine::kernel));
}

Task<Status> receive_on_device(Executor& executor, Messages& messages, Request& receive,
                               UnexpectedBuffer payload, Bytes bytes) {
    const Side side{receive.buffer, receive.location};
    Status status =
        co_await copy_in_by_device(executor, messages.context, side, payload.data(), bytes);
    payload.let_go();
    messages.finish_request(receive, std::move(status));
    co_return success();
}

}  // namespace

Status truncated(const Request& receive, Bytes bytes) {
    const bool has_tag = (receive.context & (kCollectiveContext | kPartitionedContext)) == 0;
    return failure(MPI_ERR_TRUNCATE,
                   "a message of {} bytes from rank {}{} was received into a buffer of {} bytes",
                   bytes, receive.outcome.source,
                   has_tag ? fmt::format(" with tag {}", receive.outcome.tag) : std::string(),
                   receive.buffer.bytes());
}

Result<EagerPayload> packed_payload_of(const Buffer& buffer) {
    EagerPayload payload;
    payload.packed.reset(new (std::nothrow) std::byte[buffer.bytes()]);
    if (payload.packed == nullptr)
        return failure(MPI_ERR_NO_MEM, "no memory to pack {} bytes", buffer.bytes());
    layout::pack(*buffer.layout, buffer.address, 0, buffer.bytes(), payload.packed.get());
    payload.bytes = {payload.packed.get(), buffer.bytes()};
    return payload;
}

void Messages::on_eager(Conversation& sender, transport::MessageKind kind,
                        transport::ConstSpan header, transport::ConstSpan payload) {
    const int from = sender.endpoint.rank;
    wire::Envelope envelope;
    std::memcpy(&envelope, header.data(), sizeof envelope);
    const std::uint64_t synchronous_id =
        kind == wire::kEagerSynchronous ? wire::read<wire::EagerSynchronous>(header).send_id : 0;
    if (synchronous_id != 0) sender.sequence.rts_taken(synchronous_id);
    if (Request* receive = arrive(from, envelope)) {
        deliver_eager(envelope, sender, synchronous_id, payload, *receive);
        if (synchronous_id != 0) take_followers(from, synchronous_id);
        return;
    }
    auto message = std::make_unique<Incoming>(executor);
    message->envelope = envelope;
    message->peer = from;
    message->synchronous_id = synchronous_id;
    if (!payload.empty()) {
        message->payload = hold(context, payload, HeldFor::processor);
        if (message->payload.data() == nullptr)
            message->failure =
                failure(MPI_ERR_NO_MEM,
                        "no memory to keep a message of {} bytes from rank {} that no receive "
                        "was posted for",
                        payload.size(), from);
    }
    keep(std::move(message));
    if (synchronous_id != 0) take_followers(from, synchronous_id);
}

void Messages::deliver_eager(const wire::Envelope& envelope, Conversation& sender,
                             std::uint64_t synchronous_id, transport::ConstSpan payload,
                             Request& receive) {
    const Bytes room = receive.buffer.bytes();
    const Bytes accepted = std::min<Bytes>(payload.size(), room);
    receive.outcome = {envelope.source, envelope.tag, accepted, false};
    count_received(plan::Protocol::eager, receive);
    consumed_eager(sender, payload.size());
    if (synchronous_id != 0) {
        Status sent = send(sender.endpoint.rank, wire::kFin,
                           wire::Fin{synchronous_id, MPI_SUCCESS, wire::For::sender});
        if (!sent.ok())
            log::error("the sender of a synchronous message was not told: {}", sent.text());
    }
    if (payload.size() > room) [[unlikely]]
        receive.status = truncated(receive, payload.size());
    if (transfer::in_host_memory(receive.location) || accepted == 0) {
        if (!receive.buffer.contiguous())
            layout::unpack(*receive.buffer.layout, receive.buffer.address, 0, accepted,
                           payload.data());
        else if (accepted > 0)
            copy_eager(context.host_reads, sender.endpoint, receive.buffer.data(),
                       payload.first(accepted));
        return finish_request(receive, success());
    }
    if (receive.buffer.contiguous() &&
        write_by_bar(context, receive.location, receive.buffer.data(), payload.first(accepted)))
        return finish_request(receive, success());
    // The payload lives in the transport's ring: it is held until the copy engine has read it.
    UnexpectedBuffer held = hold(context, payload.first(accepted), held_for(receive));
    if (held.data() == nullptr)
        return finish_request(
            receive,
            failure(MPI_ERR_NO_MEM, "no memory for {} bytes on their way to a device", accepted));
    context.operations.spawn(
        receive_on_device(executor, *this, receive, std::move(held), accepted));
}

void Messages::on_payload(int from, const wire::Payload& follower, transport::ConstSpan payload) {
    Incoming* message = incoming.find(from, follower.send_id);
    if (message == nullptr || message->finished.done()) return;
    if (payload.size() != message->envelope.bytes) {
        message->finished.complete(failure(MPI_ERR_INTERN, "rank {} announced {} bytes and sent {}",
                                           from, message->envelope.bytes, payload.size()));
        return;
    }
    message->payload =
        hold(context, payload,
             message->request != nullptr ? held_for(*message->request) : HeldFor::processor);
    if (message->payload.data() == nullptr) {
        message->finished.complete(failure(MPI_ERR_NO_MEM,
                                           "no memory to keep a message of {} bytes from rank {}",
                                           payload.size(), from));
        return;
    }
    message->finished.complete(success());
}

void Messages::on_eager_credit(int from, const wire::EagerCredit& credit, transport::ConstSpan) {
    Bytes& outstanding = with(from).eager_outstanding;
    outstanding -= std::min(outstanding, credit.bytes);
}

void Messages::consumed_eager(Conversation& sender, Bytes bytes) {
    sender.eager_consumed += bytes;
    if (sender.eager_consumed < context.config.eager_budget / 2) return;
    Status sent =
        send(sender.endpoint.rank, wire::kEagerCredit, wire::EagerCredit{sender.eager_consumed});
    if (sent.ok()) sender.eager_consumed = 0;
}

Task<Status> take_payload(Executor& executor, Messages& messages, Incoming& message, Side side,
                          Bytes accepted) {
    if (message.rts.synchronous != 0) {
        Status told = messages.send(message.peer, wire::kFin,
                                    wire::Fin{message.rts.send_id, MPI_SUCCESS, wire::For::sender});
        GANTRY_CO_TRY(told);
    }
    Status status = co_await message.finished;
    messages.consumed_eager(messages.with(message.peer), message.envelope.bytes);
    if (!status.ok() || accepted == 0) co_return status;
    if (!side.on_device()) {
        transfer::copy_in(side, 0, accepted, message.payload.data());
        co_return success();
    }
    if (side.contiguous() && write_by_bar(messages.context, side.location, side.at(0),
                                          {message.payload.data(), accepted}))
        co_return success();
    status = co_await copy_in_by_device(executor, messages.context, side, message.payload.data(),
                                        accepted);
    co_return status;
}

}  // namespace gantry::p2p
