// SPDX-License-Identifier: BSD-3-Clause
//
// The messenger's public verbs. The small host message goes straight through: no coroutine, no
// question to the planner beyond the eager limit it gave for this peer, one message to the
// transport.
#include "p2p/messenger.hpp"

#include "p2p/core.hpp"
#include "p2p/offer.hpp"
#include "p2p/windows.hpp"
#include "plan/direct_copy.hpp"

#include <algorithm>
#include <cstring>

namespace gantry::p2p {
namespace {

// Payload of an eager message: the buffer itself, or packed.
struct Payload {
    transport::ConstSpan bytes;
    std::unique_ptr<std::byte[]> packed;
};

Result<Payload> payload_of(const Buffer& buffer) {
    Payload payload;
    if (buffer.bytes() == 0) return payload;
    if (buffer.contiguous()) {
        payload.bytes = {buffer.data(), buffer.bytes()};
        return payload;
    }
    payload.packed.reset(new (std::nothrow) std::byte[buffer.bytes()]);
    if (payload.packed == nullptr)
        return failure(MPI_ERR_NO_MEM, "no memory to pack {} bytes", buffer.bytes());
    layout::pack(*buffer.layout, buffer.address, 0, buffer.bytes(), payload.packed.get());
    payload.bytes = {payload.packed.get(), buffer.bytes()};
    return payload;
}

// A synchronous eager message: complete when the receiver says that it was matched.
Task<Status> await_match(Executor&, Core& core, Outgoing& message) {
    Status status = co_await message.finished;
    Request& request = *message.request;
    core.remove_outgoing(message.id);
    core.finish_request(request, status);
    co_return success();
}

}  // namespace

Messenger::Messenger(Executor& executor, device::Device& device,
                     std::vector<transport::Transport*> transports, int world_rank, int world_size,
                     const config::Config& config, plan::Explain& explain)
    : core_(std::make_unique<Core>(executor, device, std::move(transports), world_rank, world_size,
                                   config, explain)) {}

Messenger::~Messenger() = default;

transport::Receiver& Messenger::receiver() {
    return *core_;
}

Result<Request*> Messenger::isend(const Group& group, const Buffer& buffer, int destination,
                                  int tag, SendMode mode) {
    Result<device::Location> location = source_of(group, buffer, destination);
    if (!location.ok()) return location.status();
    Request* request = core_->requests.create();
    if (request == nullptr) return failure(MPI_ERR_NO_MEM, "no memory for a request");
    Result<bool> left =
        start_send(group, buffer, *location, destination, tag, mode, request, false);
    if (!left.ok()) {
        discard(request);
        return left.status();
    }
    if (*left) request->done = true;
    return request;
}

Result<Request*> Messenger::send_to_wait(const Group& group, const Buffer& buffer, int destination,
                                         int tag, SendMode mode) {
    Result<device::Location> location = source_of(group, buffer, destination);
    if (!location.ok()) return location.status();
    Request* request = nullptr;
    Result<bool> left = start_send(group, buffer, *location, destination, tag, mode, request, true);
    if (!left.ok()) {
        if (request != nullptr) discard(request);
        return left.status();
    }
    core_->await(request);
    return request;
}

Result<device::Location> Messenger::source_of(const Group& group, const Buffer& buffer,
                                              int destination) {
    const Status& lost = core_->peer(group.peer(destination)).lost;
    if (!lost.ok()) return lost;
    return core_->locate(buffer);
}

Result<bool> Messenger::start_send(const Group& group, const Buffer& buffer,
                                   const device::Location& location, int destination, int tag,
                                   SendMode mode, Request*& request, bool waits) {
    Core& core = *core_;
    const int to = group.peer(destination);
    Peer& peer = core.peer(to);
    const Bytes bytes = buffer.bytes();

    const bool in_budget = peer.eager_outstanding + bytes <= core.eager_budget();
    if (mode != SendMode::synchronous && bytes <= peer.eager_limit && in_budget &&
        host_memory_of(location)) {
        auto payload = payload_of(buffer);
        if (!payload.ok()) return payload.status();
        Status sent =
            core.send(to, wire::kEager, core.next_envelope(group, to, tag, bytes), payload->bytes);
        if (!sent.ok()) [[unlikely]] {
            core.take_back_envelope(to);
            return sent;
        }
        peer.eager_outstanding += bytes;
        if (core.explain.on()) core.record_eager(to, location, buffer);
        return true;
    }

    if (mode != SendMode::synchronous && in_budget) {
        Result<bool> read = send_by_window(core, group, buffer, location, to, tag);
        if (!read.ok() || *read) return read;
    }
    // A sender that goes on to compute would tell the end of its put late; a get needs nobody.
    if (waits && location.on_device() && buffer.contiguous()) {
        if (put_announced(core, group, buffer, location, to, tag, request)) return false;
        if (!peer.lost.ok()) return peer.lost;
    }

    if (request == nullptr) request = core.requests.create();
    if (request == nullptr) return failure(MPI_ERR_NO_MEM, "no memory for a request");
    if (location.on_device() && mode != SendMode::synchronous) {
        request->buffer = buffer;
        request->location = location;
        request->peer = to;
        Result<bool> again = send_again(core, group, tag, in_budget, *request);
        if (!again.ok()) return again;
        if (*again || send_flagged_again(core, group, tag, in_budget, *request)) return false;
    }
    Outgoing& message = core.add_outgoing(to);
    message.request = request;
    message.buffer = buffer;
    message.location = location;
    message.bytes = bytes;
    plan::Question question;
    question.bytes = bytes;
    question.source = core.end_of(location, buffer);
    question.synchronous = mode == SendMode::synchronous;
    question.budget = in_budget;
    make_offer(core, message, question);

    const wire::Envelope envelope = core.next_envelope(group, to, tag, bytes);
    const std::uint64_t id = message.id;
    const bool eager = message.choice.plan.protocol == plan::Protocol::eager;
    const bool at_once = eager && host_memory_of(location);
    bool started = false;
    Status sent;
    if (at_once) {
        auto payload = payload_of(buffer);
        sent = payload.ok() ? core.send(to, wire::kEagerSynchronous,
                                        wire::EagerSynchronous{envelope, id}, payload->bytes)
                            : payload.status();
    } else if (send_flagged(core, message, envelope)) {
        return false;
    } else {
        const wire::RequestToSend rts = request_to_send(core, message, envelope);
        message.lent = wire::lends(rts.offer);
        started = copies_before_it_tells(core, message);
        if (started) core.start(message);  // it may be over, and gone, from here on
        if (started && eager && !question.synchronous && core.outgoing(id) != nullptr)
            sent = core.request_with_payload(to, rts);
        else if (!started && message.lent)
            sent = peer.transport->lend(to, wire::kRequestToSend, wire::bytes_of(rts), id,
                                        buffer.data(), bytes, message.fetched);
        else
            sent = core.request(to, rts);
        if (!started && sent.ok()) remember_offer(core, message, rts);
    }
    if (!sent.ok()) {
        core.take_back_envelope(to);
        Outgoing* const unsent = core.outgoing(id);
        if (started) {
            if (unsent != nullptr) core.end_early(*unsent, sent);
            return false;
        }
        release_source(core, message);
        core.remove_outgoing(id);
        return sent;
    }
    if (eager) peer.eager_outstanding += bytes;
    if (at_once) {
        message.running = true;
        core.operations.spawn(await_match(core.executor, core, message));
    } else if (!started && (message.lent || !waits_for_an_answer(message))) {
        core.start(message);
    }
    return false;
}

namespace {

Result<Request*> new_receive(Core& core, const Buffer& buffer) {
    auto location = core.locate(buffer);
    if (!location.ok()) return location.status();
    Request* request = core.requests.create();
    if (request == nullptr) return failure(MPI_ERR_NO_MEM, "no memory for a request");
    request->kind = RequestKind::receive;
    request->buffer = buffer;
    request->location = *location;
    return request;
}

}  // namespace

Result<Request*> Messenger::ireceive(const Group& group, const Buffer& buffer, int source,
                                     int tag) {
    return start_receive(group, buffer, source, tag, false);
}

Result<Request*> Messenger::start_receive(const Group& group, const Buffer& buffer, int source,
                                          int tag, bool waits) {
    Core& core = *core_;
    auto created = new_receive(core, buffer);
    if (!created.ok()) return created;
    Request* request = *created;
    request->context = group.context;
    request->source = source == MPI_ANY_SOURCE ? source : group.source_number(source);
    request->tag = tag;
    request->peer = source == MPI_ANY_SOURCE ? -1 : group.peer(source);
    if (auto message = core.matcher.take(group.context, request->source, tag)) {
        core.hold_memory(*request);
        const int from = message->peer;
        const std::uint32_t sequence = message->envelope.sequence;
        core.deliver_late(std::move(message), *request);
        if (waits) announce_too_late(core, *request, from, sequence);
        return request;
    }
    if (Status lost = core.nothing_comes(group, source); !lost.ok()) {
        core.requests.destroy(request);
        return lost;
    }
    if (source == MPI_ANY_SOURCE) request->group = &group;
    // First of all: its sender may be waiting for just that.
    if (waits) announce(core, *request);
    core.hold_memory(*request);
    core.matcher.post(*request);
    return request;
}

Result<Request*> Messenger::receive_to_wait(const Group& group, const Buffer& buffer, int source,
                                            int tag) {
    auto request = start_receive(group, buffer, source, tag, true);
    if (request.ok()) core_->await(*request);
    return request;
}

Result<Messenger::Exchange> Messenger::exchange(const Group& group, const Half* outgoing,
                                                const Half* incoming, bool waits) {
    Exchange both;
    Result<device::Location> source = device::Location{};
    if (outgoing != nullptr) {
        source = source_of(group, outgoing->buffer, outgoing->peer);
        if (!source.ok()) return source.status();
        both.sending = core_->requests.create();
        if (both.sending == nullptr) return failure(MPI_ERR_NO_MEM, "no memory for a request");
    }
    // The receive first: its sender may be told where its bytes go.
    if (incoming != nullptr) {
        auto request = start_receive(group, incoming->buffer, incoming->peer, incoming->tag, waits);
        if (!request.ok()) {
            if (both.sending != nullptr) discard(both.sending);
            return request.status();
        }
        both.receiving = *request;
    }
    if (outgoing != nullptr) {
        Result<bool> left = start_send(group, outgoing->buffer, *source, outgoing->peer,
                                       outgoing->tag, SendMode::standard, both.sending, waits);
        if (left.ok() && *left) both.sending->done = true;
        if (!left.ok()) {
            both.sending->complete(left.status());
            // A receive of a message that never comes would wait for ever.
            if (both.receiving != nullptr) cancel(*both.receiving);
        }
    }
    if (waits) core_->await(both.receiving);
    return both;
}

Matched Messenger::probe(const Group& group, int source, int tag) {
    const Incoming* found = core_->matcher.find(group.context, source, tag);
    if (found == nullptr) return {};
    return {const_cast<Incoming*>(found),
            {found->envelope.source, found->envelope.tag, found->envelope.bytes, false}};
}

Matched Messenger::take(const Group& group, int source, int tag) {
    auto message = core_->matcher.take(group.context, source, tag);
    if (message == nullptr) return {};
    const wire::Envelope& envelope = message->envelope;
    const Outcome outcome{envelope.source, envelope.tag, envelope.bytes, false};
    return {message.release(), outcome};
}

Status Messenger::nothing_comes(const Group& group, int source) const {
    return core_->nothing_comes(group, source);
}

Result<Request*> Messenger::ireceive_matched(Matched matched, const Buffer& buffer) {
    std::unique_ptr<Incoming> message(matched.message);
    auto created = new_receive(*core_, buffer);
    if (!created.ok()) {
        static_cast<void>(message.release());  // still the caller's
        return created;
    }
    (*created)->context = message->envelope.context;
    (*created)->source = message->envelope.source;
    (*created)->tag = message->envelope.tag;
    (*created)->peer = message->peer;
    Request* request = *created;
    core_->deliver_late(std::move(message), *request);
    return request;
}

bool Messenger::cancel(Request& request) {
    if (request.done || request.kind != RequestKind::receive || !core_->matcher.posted(request))
        return false;
    if (request.announced) return false;  // its sender may be writing to it
    core_->matcher.withdraw(request);
    request.outcome.cancelled = true;
    core_->finish_request(request, success());
    return true;
}

Aside Messenger::aside(const Buffer& replaced) {
    Core& core = *core_;
    const Bytes bytes = replaced.bytes();
    const void* like = nullptr;
    if (Result<device::Location> location = core.locate(replaced);
        location.ok() && location->on_device() && replaced.contiguous()) {
        const device::GpuFacts& gpu = core.device.gpu_facts(location->gpu);
        const Nanoseconds turn = core.takes_turns(location->gpu) ? gpu.queue_turn : 0;
        if (plan::sooner_from_inside(gpu, bytes, turn)) like = replaced.data();
    }
    return Aside(core.device, like, bytes);
}

Task<Status> Messenger::copy(Executor& executor, void* destination, const void* source,
                             Bytes bytes) {
    Core& core = *core_;
    if (bytes == 0) co_return success();
    device::Copy copy;
    if (core.device.active()) {
        auto to = core.device.classify(destination, bytes);
        if (!to.ok()) co_return to.status();
        auto from = core.device.classify(source, bytes);
        if (!from.ok()) co_return from.status();
        copy.gpu = std::max(to->gpu, from->gpu);
        copy.engine = device::Engine::automatic;
        if (to->gpu >= 0 || from->gpu >= 0) {
            core.use_gpu(copy.gpu);
            copy.destination = destination;
            copy.source = source;
            copy.bytes = bytes;
            Completion done(executor);
            core.device.copy(copy, done);
            Status status = co_await done;
            co_return status;
        }
    }
    std::copy_n(static_cast<const std::byte*>(source), bytes, static_cast<std::byte*>(destination));
    co_return success();
}

Result<Request*> Messenger::create_request(RequestKind kind) {
    Request* request = core_->requests.create();
    if (request == nullptr) return failure(MPI_ERR_NO_MEM, "no memory for a request");
    request->kind = kind;
    return request;
}

void Messenger::release(Request* request) {
    let_go_of_memory(*request);
    if (request->done)
        core_->requests.destroy(request);
    else
        request->detached = true;
}

void Messenger::let_go_of_memory(Request& request) {
    core_->let_go_of_memory(request);
}

void Messenger::discard(Request* request) {
    core_->await(nullptr);
    core_->requests.destroy_unseen(request);
}

Request* Messenger::find(MPI_Request handle) const {
    Request* request = core_->requests.find(reinterpret_cast<const void*>(handle));
    return request != nullptr && !request->detached ? request : nullptr;
}

std::uint32_t Messenger::index(const Request* request) const {
    return core_->requests.index(request);
}
Request* Messenger::at(std::uint32_t index) const {
    return core_->requests.at(index);
}

int Messenger::progress() {
    return core_->progress();
}
HostCopies& Messenger::host_copies() {
    return core_->host_copies;
}

int Messenger::look_again() {
    return core_->look_again();
}
bool Messenger::idle() const {
    return core_->idle();
}

bool Messenger::pending() const {
    return core_->pending();
}

Task<Status> Messenger::drain(Executor& executor) {
    // A send whose request was freed may still wait for its answer.
    core_->start_all_outgoing();
    Status status = co_await core_->operations.join(executor);
    co_return status;
}

Executor& Messenger::executor() {
    return core_->executor;
}
device::Device& Messenger::device() {
    return core_->device;
}

}  // namespace gantry::p2p
