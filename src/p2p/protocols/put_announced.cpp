// SPDX-License-Identifier: BSD-3-Clause
//
// Announced receives. Between two GPUs a put is seen 1 us earlier than a get (H200), but its sender
// does not know where to; asking costs more than that. A blocking receive that finds no message has
// nothing else to do, so it says where its bytes go:
//
//     receiver, in MPI_Recv                     sender
//       | --- ready [envelope n, address] ------> |
//       |                                         |  MPI_Send of envelope n: starts the copy
//       | <-- put request [envelope n] ---------- |  matched while the copy is under way
//       | <-- chunk in place -------------------- |  the copy has ended
//
// What makes it safe: envelopes are taken in the sender's order, and the receive is the only posted
// one of its context that could take number n from that source. If n has the announced context,
// source and tag, it is matched with this receive and no other. If it has not, or left before the
// announcement came, or is too large, the announcement means nothing any more. A blocking receive
// is not cancelled, so its buffer waits as long.
//
// Only where the planner prefers it: the receiver announces where its last message of that sender
// was got out of its memory and a put would have been better; the sender puts if it has mapped the
// buffer, or when the announcements that it could not use repay that (p2p/mappings.hpp).
#include "p2p/protocols/stage.hpp"

#include "base/log.hpp"
#include "base/yield.hpp"

#include <utility>

namespace gantry::p2p {
namespace {

// About a microsecond of looking at shared memory, what a put saves. In a ping-pong of two H200s 99
// of 100 announcements come by then, after 0.25 us; within 12 looks half of them came.
constexpr int kLooks = 60;
// The planner is asked about an opening so rarely: each time is a question of its own.
constexpr int kUnusedBetweenQuestions = 64;

bool fits(const wire::ReadyAgain& receive, const Group& group, int tag, Bytes bytes) {
    return receive.context == group.context && receive.source == group.source_number(group.rank) &&
           (receive.tag == MPI_ANY_TAG || receive.tag == tag) && bytes > 0 && bytes <= receive.room;
}

// What the last put like this one was, if its memory is mapped still.
bool like_the_last(Core& core, const Announcements::Put& last, const device::Location& source,
                   const device::IpcHandle& sink, Bytes bytes) {
    return last.source == source.buffer_id && last.sink == sink.buffer_id && last.bytes == bytes &&
           last.source != 0 && !core.explain.on() &&
           core.device.access(sink, source.gpu) == device::Access::open;
}

// Asks the planner; false: not by a put.
bool plan_put(Core& core, int to, const device::Location& source, Bytes bytes) {
    Announcements& announcements = core.peer(to).announcements;
    const device::IpcHandle& sink = announcements.handle();
    const device::Access access = core.device.access(sink, source.gpu);
    if (access == device::Access::never || access == device::Access::no_descriptor) return false;
    plan::Facts facts = core.facts_for(to, source, true, &sink.gpu);
    if (facts.same_gpu) return false;
    facts.announced = true;
    facts.put_open = access == device::Access::open;
    facts.ipc_open = core.peer(to).direct_buffers.contains(source.buffer_id);
    if (!facts.put_open) {
        facts.put_uses = announcements.unused(sink.buffer_id);
        if (facts.put_uses % kUnusedBetweenQuestions != 0) return false;
        facts.sender_busy = core.device.pending();
    }
    plan::Question question;
    question.bytes = bytes;
    question.source = {source.kind, source.ipc, true};
    question.sink = {device::MemoryKind::device, sink.kind, true};
    question.sink_known = true;
    question.budget = false;
    const plan::Choice& choice = core.choose(question, facts);
    if (choice.plan.protocol != plan::Protocol::ipc ||
        choice.plan.executor != plan::Executor::sender)
        return false;
    core.explain.record(question, facts, choice, to, false);
    announcements.last_put = {source.buffer_id, sink.buffer_id, bytes, engine_of(choice.plan),
                              notice_of(choice.plan)};
    return true;
}

Task<Status> put(Executor& executor, Core& core, int to, std::uint64_t id, Request& request,
                 device::IpcHandle sink, device::Copy copy) {
    if (executor.hands_over()) co_await Yield(executor);
    Completion copied(executor);
    core.device.copy(copy, copied);
    Status status = co_await copied;
    Status told;
    if (!core.peer(to).lost.ok())
        status = core.peer(to).lost;
    else if (status.ok())
        told = core.send(to, wire::kChunk, wire::Chunk{id, 0, copy.bytes, 0, 0, 0, wire::kInPlace});
    else
        told = tell_failure(core, to, id, status, wire::For::receiver);
    if (!told.ok()) log::error("rank {} was not told of a put's end: {}", to, told.text());
    core.device.close_memory(sink, copy.gpu);
    core.finish_request(request, status.ok() ? told : status);
    co_return success();
}

}  // namespace

void announce(Core& core, Request& receive) {
    if (receive.peer < 0) return;
    Peer& peer = core.peer(receive.peer);
    const device::Location& place = receive.location;
    if (!peer.last_get.put_is_better || place.gpu != peer.last_get.gpu || !place.on_device() ||
        place.ipc == device::IpcKind::none || !receive.buffer.contiguous() ||
        !core.matcher.is_next(receive))
        return;
    Announcements& announcements = peer.announcements;
    wire::ReadyAgain ready{receive.context,
                           receive.source,
                           receive.tag,
                           peer.next_expected,
                           receive.buffer.bytes(),
                           reinterpret_cast<std::uintptr_t>(receive.buffer.data()),
                           place.buffer_id};
    Status sent;
    if (announcements.named == place.buffer_id) {
        sent = core.send(receive.peer, wire::kReadyAgain, ready);
    } else {
        Result<device::IpcHandle> handle = core.device.export_memory(place);
        if (!handle.ok()) return;
        // The sender may map it: it is told when the program frees it.
        core.note_export(*handle, receive.peer);
        sent = core.send(receive.peer, wire::kReady, wire::Ready{ready, wire::encode(*handle)});
        if (sent.ok()) announcements.named = place.buffer_id;
    }
    if (!sent.ok()) return;  // the message goes the usual way
    receive.announced = true;
    announcements.expected = ready.sequence;
}

void look_for_announcement(Core& core, int to) {
    Peer& peer = core.peer(to);
    peer.announcements.looked();
    for (int look = 0; look < kLooks && peer.announcements.of(peer.next_sent) == nullptr; ++look)
        peer.transport->progress();
}

bool put_announced(Core& core, const Group& group, const Buffer& buffer,
                   const device::Location& location, int to, int tag, Request*& request) {
    Peer& peer = core.peer(to);
    const Bytes bytes = buffer.bytes();
    const wire::ReadyAgain* receive = peer.announcements.of(peer.next_sent);
    if (receive == nullptr || !fits(*receive, group, tag, bytes)) return false;
    const device::IpcHandle& sink = peer.announcements.handle();
    if (!like_the_last(core, peer.announcements.last_put, location, sink, bytes) &&
        !plan_put(core, to, location, bytes))
        return false;
    Result<void*> mapped = core.device.open_memory(sink, location.gpu);
    if (!mapped.ok()) {
        peer.announcements.last_put = {};
        return false;
    }
    peer.announcements.opened(sink.buffer_id);
    peer.announcements.put_made();
    if (request == nullptr) request = core.requests.create();
    if (request == nullptr) {
        core.device.close_memory(sink, location.gpu);
        return false;
    }
    const Announcements::Put& like = peer.announcements.last_put;
    device::Copy copy;
    copy.destination = static_cast<std::byte*>(*mapped) + (receive->address - sink.base);
    copy.source = buffer.data();
    copy.bytes = bytes;
    copy.gpu = location.gpu;
    copy.engine = like.engine;
    copy.notice = like.notice;
    const std::uint64_t id = core.next_message_id();
    const wire::PutRequest head{core.next_envelope(group, to, tag, bytes), id};
    // The copy first: its engine works while the request is on its way.
    core.operations.spawn(put(core.executor, core, to, id, *request, sink, copy));
    Status sent = core.send(to, wire::kPutRequest, head);
    if (!sent.ok()) log::error("rank {} was not told of a message: {}", to, sent.text());
    return true;
}

void Core::on_ready(int from, const wire::ReadyAgain& receive, const wire::Handle* handle) {
    Peer& receiver = peer(from);
    Announcements& announcements = receiver.announcements;
    if (!announcements.hear(receive, handle)) return;
    if (receive.sequence + 1 != receiver.next_sent) return;
    // Too late by a moment. Worth a wait where the buffer is mapped, or may be now.
    if (announcements.last_put.sink == receive.buffer_id ||
        announcements.unused(receive.buffer_id) % kUnusedBetweenQuestions ==
            kUnusedBetweenQuestions - 1)
        announcements.came_late();
}

void Core::on_put_request(int from, const wire::PutRequest& put) {
    Peer& sender = peer(from);
    sender.last_rendezvous = put.send_id;
    Announcements& announcements = sender.announcements;
    Request* receive = matcher.arrive(put.envelope);
    if (receive == nullptr || !receive->announced || announcements.coming != nullptr ||
        put.envelope.sequence != announcements.expected) {
        const Status wrong =
            failure(MPI_ERR_INTERN, "rank {} put a message that was not announced", from);
        log::error("{}", wrong.text());
        sender.early_followers.erase(put.send_id);
        if (receive != nullptr) finish_request(*receive, wrong);
        return;
    }
    receive->outcome = {put.envelope.source, put.envelope.tag, put.envelope.bytes, false};
    if (explain.on()) record_announced(from, put.envelope.bytes, *receive);
    announcements.coming = receive;
    announcements.coming_id = put.send_id;
    take_early_followers(from, put.send_id);
}

bool Core::end_of_put(int from, std::uint64_t send_id, const Status& how) {
    Announcements& announcements = peer(from).announcements;
    if (announcements.coming == nullptr || announcements.coming_id != send_id) return false;
    finish_request(*std::exchange(announcements.coming, nullptr), how);
    return true;
}

// The ledger's line at the receiver: what the sender chose, as this side sees it.
void Core::record_announced(int from, Bytes bytes, const Request& receive) {
    plan::Question question;
    question.bytes = bytes;
    question.source = question.sink = end_of(receive.location, receive.buffer);
    question.sink_known = true;
    question.budget = false;
    plan::Facts facts = facts_for(from, receive.location, false, nullptr);
    facts.announced = facts.put_open = true;
    explain.record(question, facts, choose(question, facts), from, true);
}

}  // namespace gantry::p2p
