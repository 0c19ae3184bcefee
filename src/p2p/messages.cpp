// SPDX-License-Identifier: BSD-3-Clause
//
// The tables of the messenger: conversations, requests, messages under way. arrivals.cpp handles what
// comes from peers, progress.cpp drives it all.
#include "p2p/messages.hpp"

#include "base/log.hpp"
#include "p2p/protocols/flagged_message.hpp"
#include "p2p/rendezvous_send.hpp"

#include <cstring>
#include <utility>

namespace gantry::p2p {
Messages::Messages(transfer::Context& transfer)
    : context(transfer),
      executor(transfer.executor),
      device(transfer.device),
      explain(transfer.explain),
      timeline(transfer.timeline),
      outgoing(transfer.executor),
      conversations_(static_cast<std::size_t>(transfer.endpoints.size())) {
    register_handlers();
}

Messages::~Messages() = default;

Conversation& Messages::begin(int rank) {
    transfer::Endpoint& endpoint = context.endpoints.to(rank);
    auto begun = std::make_unique<Conversation>(
        endpoint, plan::host_eager_limit(endpoint.facts, context.tuning));
    if (signatures != nullptr) begun->plain_below = 0;
    auto& place = conversations_[static_cast<std::size_t>(rank)];
    place = std::move(begun);
    return *place;
}

void Messages::carry_signatures(const Signatures& of_program) {
    signatures = &of_program;
    for (const auto& conversation : conversations_)
        if (conversation != nullptr) conversation->plain_below = 0;
}

wire::Envelope Messages::next_envelope(const Group& group, int to, int tag, Bytes bytes,
                                       const Request* send) {
    const std::uint32_t number = with(to).sequence.take_number();
    if (timeline != nullptr) [[unlikely]]
        timeline->sent(send, to, tag, number, bytes);
    return wire::Envelope{group.context, group.source_number(group.rank), tag, number, bytes};
}

Request* Messages::arrive(int from, const wire::Envelope& envelope) {
    Request* const receive = matcher.arrive(envelope);
    if (timeline != nullptr && receive != nullptr) [[unlikely]]
        timeline->matched(receive, from, envelope.tag, envelope.sequence, envelope.bytes);
    return receive;
}

Status Messages::nothing_comes(const Group& group, int source) {
    if (is_any_revoked) [[unlikely]]
        GANTRY_TRY(revoked(group));
    if (source != MPI_ANY_SOURCE) return lost(group.peer(source));
    Status why;
    for (const int member : group.peers) {
        if (member == context.world_rank) continue;
        why = lost(member);
        if (why.ok()) break;
    }
    return why;
}

void Messages::hold_memory(Request& request) {
    if (!request.location.on_device()) return;
    context.arbiter.use(request.location.gpu);
    request.in_use = context.in_use.hold(request.location, device.losses());
}

void Messages::let_go_of_memory(Request& request) {
    context.in_use.release(std::exchange(request.in_use, device::InUse::Hold{0}));
}

void Messages::finish_request(Request& request, Status status) {
    const bool detached = request.detached;
    let_go_of_memory(request);
    if (timeline != nullptr) [[unlikely]]
        timeline->ended(&request);
    // What was known when the message met its receive.
    if (!request.status.ok() && status.ok()) [[unlikely]]
        status = std::move(request.status);
    request.complete(std::move(status));
    if (detached) requests.destroy(&request);
}

void Messages::start(Outgoing& message) {
    if (message.running) return;
    message.running = true;
    context.operations.spawn(send_rendezvous(executor, *this, message));
}

// Each may end, and leave the table, as it starts.
void Messages::start_all(int to) {
    outgoing.materialize(to);
    std::vector<Outgoing*> waiting;
    outgoing.each([&waiting, to](Outgoing& message) {
        if (!message.running && (to < 0 || message.peer == to)) waiting.push_back(&message);
    });
    for (Outgoing* message : waiting)
        start(*message);
}

void Messages::remove(Outgoing& message) {
    if (message.claimable) context.arbiter.release_claim(message.id);
    outgoing.remove(message.id);
}

void Messages::end_exposure(Outgoing& message, const Status& why) {
    if (!message.exposed || message.got.done()) return;
    endpoint(message.peer).transport->take_back(message.peer, message.id);
    message.got.complete(why);
}

void Messages::queue_fin(int from, std::uint64_t send_id) {
    Conversation& sender = with(from);
    if (sender.fins.empty()) fin_queues_.push_back(from);
    sender.fins.push_back(send_id);
    if (sender.fins.size() == wire::kFinsPerMessage) send_fins();
}

void Messages::send_fins() {
    for (const int rank : fin_queues_) {
        std::vector<std::uint64_t>& fins = with(rank).fins;
        Status sent;
        if (fins.size() == 1)
            sent = send(rank, wire::kFin, wire::Fin{fins.front(), MPI_SUCCESS, wire::For::sender});
        else
            sent = send(rank, wire::kFins, wire::Fins{fins.size()}, std::as_bytes(std::span(fins)));
        if (!sent.ok() && lost(rank).ok())
            log::error("rank {} was not told of messages that were read: {}", rank, sent.text());
        fins.clear();
    }
    fin_queues_.clear();
}

void Messages::write(const BothWays& of_communicators, Counters& counters) const {
    const auto show = [](const Traffic& traffic, std::uint64_t& messages, std::uint64_t& bytes) {
        messages = traffic.messages;
        bytes = traffic.bytes;
    };
    const auto of = [this](plan::Protocol way) -> const Traffic& {
        return counted.received[static_cast<std::size_t>(way)];
    };
    using enum plan::Protocol;
    BothWays all = of_communicators;
    all.sent.add(counted.elsewhere.sent);
    all.received.add(counted.elsewhere.received);
    show(all.sent, counters.messages_sent, counters.bytes_sent);
    show(all.received, counters.messages_received, counters.bytes_received);
    Traffic at_once = all.sent, came_eager = all.received;
    at_once.remove(counted.sent_later);
    for (const Traffic& otherwise : counted.received)
        came_eager.remove(otherwise);
    show(at_once, counters.messages_sent_at_once, counters.bytes_sent_at_once);
    show(came_eager, counters.messages_received_eager, counters.bytes_received_eager);
    show(of(self), counters.messages_received_self, counters.bytes_received_self);
    show(of(rdma), counters.messages_received_rdma, counters.bytes_received_rdma);
    show(of(ipc), counters.messages_received_ipc, counters.bytes_received_ipc);
    show(of(cma), counters.messages_received_cma, counters.bytes_received_cma);
    show(of(pipeline), counters.messages_received_pipeline, counters.bytes_received_pipeline);
    counters.bytes_staged = counted.staged;
    counters.unexpected_messages = matcher.unexpected().now();
    counters.unexpected_messages_peak = matcher.unexpected().peak();
    counters.posted_receives = matcher.receives_posted().now();
    counters.posted_receives_peak = matcher.receives_posted().peak();
    for (const auto& conversation : conversations_)
        if (conversation != nullptr)
            counters.eager_bytes_outstanding += conversation->eager_outstanding;
    counters.requests = requests.live();
}

bool tell_failure(Messages& messages, int to, std::uint64_t send_id, const Status& why,
                  wire::For target) {
    if (!messages.lost(to).ok()) return false;
    const std::string text(why.text().substr(0, 1024));
    const Status told = messages.send(to, wire::kFin, wire::Fin{send_id, why.error_class(), target},
                                      std::as_bytes(std::span(text)));
    if (!told.ok()) log::error("rank {} was not told that a message failed: {}", to, told.text());
    return told.ok();
}

}  // namespace gantry::p2p
