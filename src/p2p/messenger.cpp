// SPDX-License-Identifier: BSD-3-Clause
//
// The messenger's public verbs.
#include "p2p/messenger.hpp"

#include "p2p/messages.hpp"
#include "p2p/protocols/put_after_rtr.hpp"
#include "p2p/send.hpp"
#include "plan/direct_copy.hpp"
#include "transfer/mover.hpp"

#include <algorithm>

namespace gantry::p2p {
Messenger::Messenger(transfer::Context& context) : messages_(std::make_unique<Messages>(context)) {}

Messenger::~Messenger() = default;

void Messenger::carry_signatures(const Signatures& signatures) {
    messages_->carry_signatures(signatures);
}

Result<Request*> Messenger::isend(const Group& group, const Buffer& buffer, int destination,
                                  int tag, SendMode mode) {
    Result<device::Location> location = source_of(group, buffer, destination);
    if (!location.ok()) return location.status();
    Request* request = messages_->requests.create();
    if (request == nullptr) return failure(MPI_ERR_NO_MEM, "no memory for a request");
    Result<bool> left =
        start_send(*messages_, group, buffer, *location, destination, tag, mode, request, false);
    if (!left.ok()) {
        discard(request);
        return left.status();
    }
    messages_->count_sent(group, buffer.bytes(), *left);
    if (*left) request->done = true;
    return request;
}

Result<Request*> Messenger::send_to_wait(const Group& group, const Buffer& buffer, int destination,
                                         int tag, SendMode mode) {
    Result<device::Location> location = source_of(group, buffer, destination);
    if (!location.ok()) return location.status();
    Request* request = nullptr;
    Result<bool> left =
        start_send(*messages_, group, buffer, *location, destination, tag, mode, request, true);
    if (!left.ok()) {
        if (request != nullptr) discard(request);
        return left.status();
    }
    messages_->count_sent(group, buffer.bytes(), *left);
    messages_->await(request);
    return request;
}

Result<device::Location> Messenger::source_of(const Group& group, const Buffer& buffer,
                                              int destination) {
    const Status& lost = messages_->lost(group.peer(destination));
    if (!lost.ok()) return lost;
    if (messages_->is_any_revoked) [[unlikely]]
        GANTRY_TRY(messages_->revoked(group));
    return messages_->context.locate(buffer);
}

namespace {

Result<Request*> new_receive(Messages& messages, const Buffer& buffer) {
    auto location = messages.context.locate(buffer);
    if (!location.ok()) return location.status();
    Request* request = messages.requests.create();
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
    Messages& messages = *messages_;
    auto created = new_receive(messages, buffer);
    if (!created.ok()) return created;
    Request* request = *created;
    request->context = group.context;
    request->source = source == MPI_ANY_SOURCE ? source : group.source_number(source);
    request->tag = tag;
    request->peer = source == MPI_ANY_SOURCE ? -1 : group.peer(source);
    if (group.traffic != nullptr) request->traffic = &group.traffic->received;
    if (auto message = messages.matcher.take(group.context, request->source, tag)) {
        messages.hold_memory(*request);
        const int from = message->peer;
        const std::uint32_t sequence = message->envelope.sequence;
        messages.deliver_late(std::move(message), *request);
        if (waits) send_late_rtr(messages, *request, from, sequence);
        return request;
    }
    if (Status lost = messages.nothing_comes(group, source); !lost.ok()) {
        messages.requests.destroy(request);
        return lost;
    }
    if (source == MPI_ANY_SOURCE) request->group = &group;
    // First of all: its sender may be waiting for just that.
    if (waits) send_rtr(messages, *request);
    messages.hold_memory(*request);
    messages.matcher.post(*request);
    if (source == MPI_ANY_SOURCE && group.acknowledged != messages.losses.size()) [[unlikely]]
        messages.pend_if_unacknowledged(*request);
    return request;
}

Result<Request*> Messenger::receive_to_wait(const Group& group, const Buffer& buffer, int source,
                                            int tag) {
    auto request = start_receive(group, buffer, source, tag, true);
    if (request.ok()) messages_->await(*request);
    return request;
}

Result<Messenger::Exchange> Messenger::exchange(const Group& group, const Half* outgoing,
                                                const Half* incoming, bool waits) {
    Exchange both;
    Result<device::Location> source = device::Location{};
    if (outgoing != nullptr) {
        source = source_of(group, outgoing->buffer, outgoing->peer);
        if (!source.ok()) return source.status();
        both.sending = messages_->requests.create();
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
        Result<bool> left = start_send(*messages_, group, outgoing->buffer, *source, outgoing->peer,
                                       outgoing->tag, outgoing->mode, both.sending, waits);
        if (left.ok()) messages_->count_sent(group, outgoing->buffer.bytes(), *left);
        if (left.ok() && *left) both.sending->done = true;
        if (!left.ok()) {
            both.sending->complete(left.status());
            // A receive of a message that never comes would wait for ever.
            if (both.receiving != nullptr) cancel(*both.receiving);
        }
    }
    if (waits) messages_->await(both.receiving);
    return both;
}

Matched Messenger::probe(const Group& group, int source, int tag) {
    const Incoming* found = messages_->matcher.find(group.context, source, tag);
    if (found == nullptr) return {};
    return {const_cast<Incoming*>(found),
            {found->envelope.source, found->envelope.tag, found->envelope.bytes, false}};
}

Matched Messenger::take(const Group& group, int source, int tag) {
    auto message = messages_->matcher.take(group.context, source, tag);
    if (message == nullptr) return {};
    const wire::Envelope& envelope = message->envelope;
    const Outcome outcome{envelope.source, envelope.tag, envelope.bytes, false};
    return {message.release(), outcome};
}

Status Messenger::nothing_comes(const Group& group, int source) const {
    GANTRY_TRY(messages_->nothing_comes(group, source));
    if (source != MPI_ANY_SOURCE) return success();
    return unless_pending(messages_->unacknowledged(group));
}

Result<Request*> Messenger::ireceive_matched(const Group& group, Matched matched,
                                             const Buffer& buffer) {
    std::unique_ptr<Incoming> message(matched.message);
    auto created = new_receive(*messages_, buffer);
    if (!created.ok()) {
        static_cast<void>(message.release());  // still the caller's
        return created;
    }
    (*created)->context = message->envelope.context;
    (*created)->source = message->envelope.source;
    (*created)->tag = message->envelope.tag;
    (*created)->peer = message->peer;
    Request* request = *created;
    if (group.traffic != nullptr) request->traffic = &group.traffic->received;
    messages_->hold_memory(*request);
    messages_->deliver_late(std::move(message), *request);
    return request;
}

bool Messenger::cancel(Request& request) {
    request.go_on();
    if (!request.done && request.kind == RequestKind::send) messages_->cancel(request);
    if (request.done || request.kind != RequestKind::receive || !messages_->matcher.posted(request))
        return false;
    if (request.rtr_sent) return false;  // its sender may be writing to it
    messages_->matcher.withdraw(request);
    request.outcome.cancelled = true;
    messages_->finish_request(request, success());
    return true;
}

transfer::BounceBuffer Messenger::bounce_buffer(const Buffer& replaced) {
    Messages& messages = *messages_;
    const Bytes bytes = replaced.bytes();
    const void* like = nullptr;
    if (Result<device::Location> location = messages.context.locate(replaced);
        location.ok() && location->on_device() && replaced.contiguous()) {
        const device::GpuFacts& gpu = messages.device.gpu_facts(location->gpu);
        const Nanoseconds turn =
            messages.context.arbiter.is_time_sliced(location->gpu) ? gpu.queue_turn : 0;
        if (plan::sooner_from_inside(gpu, bytes, turn)) like = replaced.data();
    }
    return transfer::BounceBuffer(messages.device, like, bytes);
}

Result<Request*> Messenger::create_request(RequestKind kind) {
    Request* request = messages_->requests.create();
    if (request == nullptr) return failure(MPI_ERR_NO_MEM, "no memory for a request");
    request->kind = kind;
    return request;
}

void Messenger::release(Request* request) {
    let_go_of_memory(*request);
    if (request->done) {
        if (!request->status.ok()) [[unlikely]]
            give_up(*request);
        messages_->requests.destroy(request);
    } else {
        request->detached = true;
    }
}

// Of a receive that is pending nothing shall come any more.
void Messenger::give_up(Request& request) {
    if (request.pending() && messages_->matcher.posted(request))
        messages_->matcher.withdraw(request);
}

void Messenger::let_go_of_memory(Request& request) {
    messages_->let_go_of_memory(request);
}

void Messenger::discard(Request* request) {
    messages_->await(nullptr);
    if (!request->status.ok()) [[unlikely]]
        give_up(*request);
    messages_->requests.destroy_unseen(request);
}

Request* Messenger::find(MPI_Request handle) const {
    Request* request = messages_->requests.find(reinterpret_cast<const void*>(handle));
    return request != nullptr && !request->detached ? request : nullptr;
}

std::uint32_t Messenger::index(const Request* request) const {
    return messages_->requests.index(request);
}
Request* Messenger::at(std::uint32_t index) const {
    return messages_->requests.at(index);
}

std::size_t Messenger::count(bool (*counts)(const Request&)) {
    std::size_t number = 0;
    messages_->requests.for_each(
        [&](const Request& request) { number += counts(request) ? 1 : 0; });
    return number;
}

int Messenger::progress() {
    return messages_->progress();
}
int Messenger::look_again() {
    return messages_->context.look_again();
}
bool Messenger::idle() const {
    return messages_->idle();
}

bool Messenger::pending() const {
    return messages_->pending();
}

Task<Status> Messenger::drain(Executor& executor) {
    // A send whose request was freed may still wait for its answer.
    messages_->start_all();
    Status status = co_await messages_->context.operations.join(executor);
    co_return status;
}

void Messenger::grow() {
    messages_->grow();
}

bool Messenger::is_quiet(int peer) {
    return messages_->is_quiet(peer);
}

void Messenger::withdraw_memory(int peer) {
    if (messages_->lost(peer).ok()) messages_->context.withdraw_memory(peer);
}

void Messenger::forget(int peer) {
    messages_->forget(peer);
    std::ranges::replace(messages_->losses, peer, -1);
}

Executor& Messenger::executor() {
    return messages_->executor;
}

void Messenger::write(const BothWays& of_communicators, Counters& counters) const {
    messages_->write(of_communicators, counters);
}

void Messenger::begin_peaks_anew() {
    messages_->matcher.begin_peaks_anew();
}

}  // namespace gantry::p2p
