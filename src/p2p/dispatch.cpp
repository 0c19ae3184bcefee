// SPDX-License-Identifier: BSD-3-Clause
//
// What the messenger does with arriving messages. Envelopes are taken in the sender's sequence:
// early ones are parked, repeats are dropped; everything else concerns a message already known by
// its id.
#include "p2p/core.hpp"

#include "base/log.hpp"
#include "p2p/windows.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace gantry::p2p {
namespace {

constexpr std::size_t kRememberedAllocations = 4096;

Status truncated(Bytes bytes, Bytes room) {
    return failure(MPI_ERR_TRUNCATE, "a message of {} bytes was received into a buffer of {} bytes",
                   bytes, room);
}

bool takes_from_slots(const wire::ClearToSend& cts) {
    const plan::Plan verdict = wire::decode(cts.verdict);
    return cts.direct_next == 0 && verdict.protocol == plan::Protocol::pipeline &&
           verdict.sink_engine != plan::CopyEngine::cpu;
}

}  // namespace

void Core::on_message(int from, transport::MessageKind kind, transport::ConstSpan header,
                      transport::ConstSpan payload) {
    peer(from).read_by_window = 0;
    switch (kind) {
        case wire::kEager:
        case wire::kEagerSynchronous:
        case wire::kRequestToSend:
        case wire::kRequestAgain:
        case wire::kRequestElsewhere:
        case wire::kPutRequest: {
            wire::Envelope envelope;
            std::memcpy(&envelope, header.data(), sizeof envelope);
            Peer& sender = peer(from);
            const auto distance =
                static_cast<std::int32_t>(envelope.sequence - sender.next_expected);
            if (distance == 0) {
                in_sequence(from, kind, header, payload);
                if (sender.early.empty()) [[likely]]
                    return;
                for (auto next = sender.early.find(sender.next_expected);
                     next != sender.early.end(); next = sender.early.find(sender.next_expected)) {
                    const Peer::Early early = std::move(next->second);
                    sender.early.erase(next);
                    in_sequence(from, early.kind, early.header, early.payload);
                }
            } else if (distance > 0) {
                sender.early.try_emplace(
                    envelope.sequence,
                    Peer::Early{
                        kind, {header.begin(), header.end()}, {payload.begin(), payload.end()}});
            }
            return;
        }
        case wire::kClearToSend:
            return on_clear_to_send(from, wire::read<wire::ClearToSend>(header), payload);
        case wire::kChunk: {
            const auto chunk = wire::read<wire::Chunk>(header);
            if (!keep_early_follower(from, chunk.send_id, kind, header, payload))
                on_chunk(from, chunk);
            return;
        }
        case wire::kCredit:
            // Of a lost peer everything has been taken back.
            if (peer(from).lost.ok()) on_credit(wire::read<wire::Credit>(header));
            return;
        case wire::kFinish: {
            const auto finish = wire::read<wire::Finish>(header);
            if (finish.target == wire::For::sender ||
                !keep_early_follower(from, finish.send_id, kind, header, payload))
                on_finish(from, finish, payload);
            return;
        }
        case wire::kFinishMany: {
            const auto many = wire::read<wire::FinishMany>(header);
            for (std::size_t i = 0;
                 i < many.count && (i + 1) * sizeof(std::uint64_t) <= payload.size(); ++i) {
                wire::Finish finish{0, MPI_SUCCESS, wire::For::sender};
                std::memcpy(&finish.send_id, payload.data() + i * sizeof finish.send_id,
                            sizeof finish.send_id);
                on_finish(from, finish, {});
            }
            return;
        }
        case wire::kPayload: {
            const auto follower = wire::read<wire::Payload>(header);
            if (!keep_early_follower(from, follower.send_id, kind, header, payload))
                on_payload(from, follower, payload);
            return;
        }
        case wire::kBudget: {
            Peer& sender = peer(from);
            sender.eager_outstanding -=
                std::min(sender.eager_outstanding, wire::read<wire::Budget>(header).bytes);
            return;
        }
        case wire::kForget: return on_forget(from, wire::read<wire::Forget>(header));
        case wire::kReady: {
            const auto ready = wire::read<wire::Ready>(header);
            return on_ready(from, ready.receive, &ready.handle);
        }
        case wire::kReadyAgain:
            return on_ready(from, wire::read<wire::ReadyAgain>(header), nullptr);
        default:
            log::error(
                "rank {} sent a message of unknown kind {}: mixed versions of Gantry in one job?",
                from, kind);
    }
}

void Core::in_sequence(int from, transport::MessageKind kind, transport::ConstSpan header,
                       transport::ConstSpan payload) {
    ++peer(from).next_expected;
    if (kind == wire::kRequestToSend) {
        on_request_to_send(from, wire::read<wire::RequestToSend>(header));
    } else if (kind == wire::kRequestAgain) {
        on_request_again(from, wire::read<wire::RequestAgain>(header));
    } else if (kind == wire::kRequestElsewhere) {
        on_request_elsewhere(from, wire::read<wire::RequestElsewhere>(header));
    } else if (kind == wire::kPutRequest) {
        on_put_request(from, wire::read<wire::PutRequest>(header));
    } else {
        on_eager(from, kind, header, payload);
    }
}

Core::KeptFor Core::kept_for(const Request& receive) const {
    if (!receive.location.on_device()) return KeptFor::receive;
    // Kernels reach only that, and rows of other memory would be the driver's to stage.
    return receive.buffer.contiguous() ? KeptFor::copy_engine : KeptFor::page_locked;
}

Kept Core::keep(transport::ConstSpan bytes, KeptFor whom) {
    Kept kept;
    if (whom == KeptFor::page_locked ||
        (whom == KeptFor::copy_engine && bytes.size() >= plan::kKeptInSlotsFrom)) {
        Result<SlotPool*> slots = pool(transport::Pool::device_slots);
        const Slot slot = slots.ok() ? (*slots)->try_acquire(bytes.size(), SlotUse::sink) : Slot{};
        if (slot.units != 0) kept = Kept(**slots, slot);
    }
    if (kept.data() == nullptr)
        kept = Kept(std::unique_ptr<std::byte[]>(new (std::nothrow)
                                                     std::byte[std::max<Bytes>(bytes.size(), 1)]));
    if (kept.data() != nullptr && !bytes.empty())
        std::memcpy(kept.data(), bytes.data(), bytes.size());
    return kept;
}

void Core::on_eager(int from, transport::MessageKind kind, transport::ConstSpan header,
                    transport::ConstSpan payload) {
    wire::Envelope envelope;
    std::memcpy(&envelope, header.data(), sizeof envelope);
    const std::uint64_t synchronous_id =
        kind == wire::kEagerSynchronous ? wire::read<wire::EagerSynchronous>(header).send_id : 0;
    if (Request* receive = matcher.arrive(envelope)) {
        deliver_eager(envelope, from, synchronous_id, payload, *receive);
        return;
    }
    auto message = std::make_unique<Incoming>(executor);
    message->envelope = envelope;
    message->peer = from;
    message->synchronous_id = synchronous_id;
    if (!payload.empty()) {
        message->payload = keep(payload, KeptFor::receive);
        if (message->payload.data() == nullptr)
            message->failure =
                failure(MPI_ERR_NO_MEM,
                        "no memory to keep a message of {} bytes from rank {} that no receive "
                        "was posted for",
                        payload.size(), from);
    }
    matcher.keep(std::move(message));
}

void Core::deliver_eager(const wire::Envelope& envelope, int from, std::uint64_t synchronous_id,
                         transport::ConstSpan payload, Request& receive) {
    const Bytes room = receive.buffer.bytes();
    const Bytes accepted = std::min<Bytes>(payload.size(), room);
    receive.outcome = {envelope.source, envelope.tag, accepted, false};
    consumed_eager(from, payload.size());
    if (synchronous_id != 0) {
        Status sent =
            send(from, wire::kFinish, wire::Finish{synchronous_id, MPI_SUCCESS, wire::For::sender});
        if (!sent.ok())
            log::error("the sender of a synchronous message was not told: {}", sent.text());
    }
    const bool host = receive.location.kind == device::MemoryKind::host ||
                      receive.location.kind == device::MemoryKind::pinned;
    if (host || accepted == 0) {
        if (receive.buffer.contiguous()) {
            if (accepted > 0) std::memcpy(receive.buffer.data(), payload.data(), accepted);
        } else {
            layout::unpack(*receive.buffer.layout, receive.buffer.address, 0, accepted,
                           payload.data());
        }
        finish_request(receive,
                       payload.size() > room ? truncated(payload.size(), room) : success());
        return;
    }
    if (receive.buffer.contiguous() &&
        write_by_window(*this, receive.location, receive.buffer.data(), payload.first(accepted))) {
        finish_request(receive,
                       payload.size() > room ? truncated(payload.size(), room) : success());
        return;
    }
    // The payload lives in the transport's ring: keep it until the copy engine has read it.
    Kept kept = keep(payload.first(accepted), kept_for(receive));
    if (kept.data() == nullptr) {
        finish_request(
            receive,
            failure(MPI_ERR_NO_MEM, "no memory for {} bytes on their way to a device", accepted));
        return;
    }
    if (payload.size() > room) receive.status = truncated(payload.size(), room);
    operations.spawn(receive_eager_on_device(executor, *this, receive, std::move(kept), accepted));
}

void Core::deliver(std::unique_ptr<Incoming> message, Request& receive) {
    if (!message->failure.ok()) {
        receive.outcome = {message->envelope.source, message->envelope.tag, 0, false};
        give_back(*message);
        if (message->rendezvous) incoming_.erase({message->peer, message->rts.send_id});
        finish_request(receive, message->failure);
        return;
    }
    if (!message->rendezvous) {
        deliver_eager(message->envelope, message->peer, message->synchronous_id,
                      {message->payload.data(), message->envelope.bytes}, receive);
        return;
    }
    Incoming& reference = *message;
    reference.rts.take_at_its_word();
    reference.request = &receive;
    receive.outcome = {reference.envelope.source, reference.envelope.tag,
                       std::min<Bytes>(reference.envelope.bytes, receive.buffer.bytes()), false};
    if (reference.envelope.bytes > receive.buffer.bytes())
        receive.status = truncated(reference.envelope.bytes, receive.buffer.bytes());
    add_incoming(std::move(message));
    operations.spawn(receive_rendezvous(executor, *this, reference));
}

void Core::deliver_late(std::unique_ptr<Incoming> message, Request& receive) {
    const wire::RequestToSend& rts = message->rts;
    const wire::RequestAgain own = rts.own();
    const int from = message->peer;
    if (!message->rendezvous || !message->failure.ok()) return deliver(std::move(message), receive);
    if (get_again(*this, from, rts, own, receive, device::Company::unknown))
        gets_wait_ = true;
    else if (!message->arrived.empty() || !take_flagged(*this, from, rts, own, receive, true))
        return deliver(std::move(message), receive);
    incoming_.erase({from, own.send_id});
}

// A network may deliver a piece of a message before the envelope that it belongs to.
bool Core::keep_early_follower(int from, std::uint64_t send_id, transport::MessageKind kind,
                               transport::ConstSpan header, transport::ConstSpan payload) {
    Peer& sender = peer(from);
    if (send_id <= sender.last_rendezvous) return false;
    sender.early_followers[send_id].push_back(
        {kind, {header.begin(), header.end()}, {payload.begin(), payload.end()}});
    return true;
}

void Core::take_early_followers(int from, std::uint64_t send_id) {
    Peer& sender = peer(from);
    if (sender.early_followers.empty()) return;
    const auto followers = sender.early_followers.extract(send_id);
    if (followers.empty()) return;
    for (const Peer::Early& follower : followers.mapped())
        on_message(from, follower.kind, follower.header, follower.payload);
}

void Core::keep_or_deliver(int from, const wire::RequestToSend& rts, Request* receive) {
    auto message = std::make_unique<Incoming>(executor);
    if (rts.flag_number != 0) message->failure = await_flags(*this, from, rts);
    message->rts = rts;
    message->envelope = rts.envelope;
    message->peer = from;
    message->rendezvous = true;
    if (receive != nullptr) {
        deliver(std::move(message), *receive);
        return;
    }
    incoming_[{from, rts.send_id}] = message.get();  // chunks may come before a receive is posted
    matcher.keep(std::move(message));
}

void Core::on_clear_to_send(int from, const wire::ClearToSend& cts, transport::ConstSpan payload) {
    if (cts.direct_next != 0) {
        auto& direct = peer(from).direct_buffers;
        if (direct.size() >= kRememberedAllocations) direct.clear();
        direct.insert(cts.direct_next);
    }
    if (cts.inbox != 0) named.send_descriptor(cts.wanted, cts.inbox);
    // What it says may make another offer better than the last one.
    if (!takes_from_slots(cts)) peer(from).last_flagged.source = 0;
    peer(from).sinks.learn_strided(wire::decode(cts.verdict));
    Outgoing* message = outgoing(cts.send_id);
    const Request* const sent = flagged_send(*this, cts.send_id);
    if (cts.send_id == peer(from).last_flagged_id) peer(from).last_answered = true;
    if (message == nullptr && sent == nullptr) return;  // it all left ahead of the verdict
    const device::Location& source = sent != nullptr ? sent->location : message->location;
    const Bytes bytes = sent != nullptr ? sent->buffer.bytes() : message->bytes;
    if (cts.direct_next != 0)  // taken from slots only because it lay there already
        peer(from).sinks.learn_read(source);
    else
        peer(from).sinks.learn(source, bytes, wire::decode(cts.verdict));
    if (sent != nullptr) return;
    if (cts.key_bytes > std::min<Bytes>(payload.size(), transport::RemoteKey::kLongest)) {
        log::error("rank {} sent a verdict with a key of {} bytes", from, cts.key_bytes);
        return;
    }
    if (cts.key_bytes != 0) message->key = transport::RemoteKey(payload.first(cts.key_bytes));
    for (std::size_t at = cts.key_bytes; at + sizeof(std::uint32_t) <= payload.size();
         at += sizeof(std::uint32_t)) {
        std::uint32_t unit;
        std::memcpy(&unit, payload.data() + at, sizeof unit);
        message->grants.push(unit);
    }
    end_loan(*message, failure(MPI_ERR_PENDING, "the receiver wants the message another way"));
    message->answers.push(cts);
    start(*message);
}

void Core::on_chunk(int from, const wire::Chunk& chunk) {
    if (chunk.pool == wire::kInPlace && end_of_put(from, chunk.send_id, success())) return;
    Incoming* message = incoming(from, chunk.send_id);
    if (message != nullptr && !message->discard_chunks) {
        message->arrived.push(chunk);
        return;
    }
    // Copied ahead of a verdict that does not need it, or past the room of a truncated receive: the
    // slot goes back.
    Status sent = send(from, wire::kCredit, wire::credit_for(chunk));
    if (!sent.ok()) log::error("a staging slot of rank {} was not returned: {}", from, sent.text());
}

void Core::on_credit(const wire::Credit& credit) {
    if (credit.units != 0) {
        std::optional<SlotPool>& pool = pools_[credit.pool];
        if (pool) pool->release(credit.unit, credit.units);
    }
    Outgoing* const message = outgoing(credit.send_id);
    if (message != nullptr) message->grants.push(credit.unit);
}

void Core::on_payload(int from, const wire::Payload& follower, transport::ConstSpan payload) {
    Incoming* message = incoming(from, follower.send_id);
    if (message == nullptr || message->finished.done()) return;
    if (payload.size() != message->envelope.bytes) {
        message->finished.complete(failure(MPI_ERR_INTERN, "rank {} announced {} bytes and sent {}",
                                           from, message->envelope.bytes, payload.size()));
        return;
    }
    message->payload =
        keep(payload, message->request != nullptr ? kept_for(*message->request) : KeptFor::receive);
    if (message->payload.data() == nullptr) {
        message->finished.complete(failure(MPI_ERR_NO_MEM,
                                           "no memory to keep a message of {} bytes from rank {}",
                                           payload.size(), from));
        return;
    }
    message->finished.complete(success());
}

void Core::on_finish(int from, const wire::Finish& finish, transport::ConstSpan payload) {
    Status status;
    if (finish.error_class != MPI_SUCCESS)
        status = Status::make(
            finish.error_class,
            fmt::format(
                "rank {} reports: {}", from,
                std::string_view(reinterpret_cast<const char*>(payload.data()), payload.size())));
    if (finish.target == wire::For::sender) {
        Request* const read = status.ok() ? unread_.take(finish.send_id) : nullptr;
        if (read != nullptr) {
            peer(from).sinks.learn_read(read->location);
            finish_request(*read, status);
            return;
        }
        Outgoing* message = outgoing(finish.send_id);
        if (message == nullptr) {
            if (!status.ok() && fail_flagged_send(*this, finish.send_id, status)) return;
            // Already complete here, and the receiver gave up: it waits to hear that nothing of us
            // is in flight.
            if (!status.ok()) {
                Status sent =
                    send(from, wire::kFinish,
                         wire::Finish{finish.send_id, MPI_ERR_OTHER, wire::For::receiver});
                if (!sent.ok())
                    log::error("an abort by rank {} was not acknowledged: {}", from, sent.text());
            }
            return;
        }
        if (status.ok()) peer(from).sinks.learn_read(message->location);
        if (status.ok() && !message->running) {  // it waited for nothing else
            Request& request = *message->request;
            remove_outgoing(finish.send_id);
            finish_request(request, status);
            return;
        }
        if (!status.ok()) {
            end_early(*message, status);
        } else {
            // The receiver has copied what we offered: its verdict, and the end, in one message.
            wire::ClearToSend verdict{};
            verdict.send_id = finish.send_id;
            verdict.verdict = wire::encode(message->choice.plan);
            verdict.accepted = message->bytes;
            message->answers.push(verdict);
        }
        if (!message->finished.done()) message->finished.complete(status);
        start(*message);
        return;
    }
    if (!status.ok()) {
        // What lies in slots goes back; nobody raises the other flags.
        take_raised_flags();
        flagged.awaited.drop(from, finish.send_id);
        fail_flagged_receives(*this, from, finish.send_id, status);
        if (end_of_put(from, finish.send_id, status)) return;
    }
    Incoming* message = incoming(from, finish.send_id);
    if (message == nullptr) return;
    if (!status.ok()) message->arrived.close(status);
    if (message->request == nullptr) message->failure = status;
    if (!message->finished.done()) message->finished.complete(status);
}

void Core::on_forget(int from, const wire::Forget& forget) {
    peer(from).announcements.forget(forget.buffer_id);
    device::Uuid gpu{};
    std::memcpy(gpu.data(), forget.gpu, sizeof forget.gpu);
    device.forget_memory(forget.buffer_id, gpu);
}

void Core::consumed_eager(int from, Bytes bytes) {
    Peer& sender = peer(from);
    sender.eager_consumed += bytes;
    if (sender.eager_consumed < config_.eager_budget / 2) return;
    Status sent = send(from, wire::kBudget, wire::Budget{sender.eager_consumed});
    if (sent.ok()) sender.eager_consumed = 0;
}

}  // namespace gantry::p2p
