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
//       | <-- flag := number -------------------- |  the copy has ended
//
// What makes it safe: envelopes are taken in the sender's order, and the receive is the only posted
// one of its context that could take number n from that source. If n has the announced context,
// source and tag, it is matched with this receive and no other. If it has not, or left before the
// announcement came, or is too large, the announcement means nothing any more. A blocking receive
// (MPI_Sendrecv's, too) is not cancelled, so its buffer waits as long.
//
// Only where the planner prefers it: the receiver announces where its last message of that sender
// was got out of its memory and a put would have been better; the sender puts if it has mapped the
// buffer, or when the announcements that it could not use repay that (p2p/mappings.hpp).
//
// A blocking receive that finds its message announces all the same, too late: so the sender counts it
// as one that a mapping would have served. In a ping-pong of large messages one way is put first; who
// gets them answers before the other one receives again, and would never hear of a buffer.
//
// The flag lies in the sender's segment. The device raises it where the planner says so, behind large
// copies, so that both processes see the end at the same time; else the sender does.
#include "p2p/protocols/flagged.hpp"
#include "p2p/protocols/short_copy.hpp"
#include "p2p/protocols/stage.hpp"

#include "base/log.hpp"

#include <new>
#include <optional>
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

// The peer's announced buffer, or the one that it announced last, as it is mapped here.
struct Sink {
    device::IpcHandle handle;
    std::byte* base = nullptr;  // null: it is not open
};

Sink open_sink(Core& core, Announcements& announcements, int gpu) {
    Sink sink{announcements.handle(), nullptr};
    Result<void*> mapped = core.device.open_memory(sink.handle, gpu);
    if (mapped.ok())
        sink.base = static_cast<std::byte*>(*mapped);
    else
        announcements.last_put = {};
    return sink;
}

void close_sink(Core& core, Sink& sink, int gpu) {
    if (std::exchange(sink.base, nullptr) != nullptr) core.device.close_memory(sink.handle, gpu);
}

// Of the buffer announced last, where a put into it is made as the last one was and it is mapped still;
// else not open.
Sink sink_of_last_put(Core& core, const Announcements& announcements,
                      const device::Location& source, Bytes bytes) {
    const Announcements::Put& last = announcements.last_put;
    Sink sink{announcements.handle(), nullptr};
    if (last.source == source.buffer_id && last.sink == sink.handle.buffer_id &&
        last.bytes == bytes && last.source != 0 && !core.explain.on())
        sink.base = static_cast<std::byte*>(core.device.open_again(sink.handle, source.gpu));
    return sink;
}

// Asks the planner; false: not by a put.
bool plan_put(Core& core, int to, const device::Location& source, Bytes bytes) {
    Announcements& announcements = core.peer(to).announcements;
    const device::IpcHandle& sink = announcements.handle();
    const device::Access access = core.device.access(sink, source.gpu);
    if (access == device::Access::never || access == device::Access::no_descriptor) return false;
    plan::Facts facts = core.facts_for(to, source, true, &sink.gpu);
    if (facts.takes_turns()) return false;
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

struct Put : ShortCopy {
    using ShortCopy::ShortCopy;
    Sink sink;
    Flag* flag = nullptr;                    // null: told by a chunk
    std::optional<wire::PutRequest> untold;  // could not leave beside the copy

    Status ended() {
        core.peer(peer).announcements.putting = false;
        // Its envelope is counted: without it the peer understands nothing that comes behind it.
        if (untold && core.peer(peer).lost.ok()) {
            Status sent = core.send(peer, wire::kPutRequest, *untold);
            if (!sent.ok()) core.on_peer_lost(peer, sent);
        }
        const Status& lost = core.peer(peer).lost;
        Status outcome = lost.ok() ? status() : lost;
        Status told;
        if (outcome.ok() && flag != nullptr)
            raise(*flag, copy.number);
        else if (outcome.ok())
            outcome = told = core.send(
                peer, wire::kChunk, wire::Chunk{send_id, 0, copy.bytes, 0, 0, 0, wire::kInPlace});
        else if (lost.ok())
            told = tell_failure(core, peer, send_id, outcome, wire::For::receiver);
        if (!told.ok()) log::error("rank {} was not told of a put's end: {}", peer, told.text());
        close_sink(core, sink, copy.gpu);
        return outcome;
    }
};

// Our flag of puts to that rank; null: chunks tell of their ends.
Flag* flag_of_puts(Core& core, int to) {
    return own_flags(core, to).empty() ? nullptr
                                       : core.peer(to).transport->put_flag(core.world_rank(), to);
}

void look_for_announcement(Peer& peer) {
    peer.announcements.looked();
    for (int look = 0; look < kLooks && peer.announcements.of(peer.next_sent) == nullptr; ++look)
        peer.transport->progress();
}

// As the last plan of a put says.
void follow_plan(Put& put) {
    const Announcements::Put& last = put.core.peer(put.peer).announcements.last_put;
    put.copy.engine = last.engine;
    put.copy.notice = last.notice;
    put.copy.word =
        put.flag != nullptr && last.notice == device::Notice::flag ? &put.flag->number : nullptr;
}

// All that it wants but where to.
void prepare(Put& put, const Buffer& buffer, int gpu) {
    put.copy.source = buffer.data();
    put.copy.bytes = buffer.bytes();
    put.copy.gpu = gpu;
    put.flag = flag_of_puts(put.core, put.peer);
    if (put.flag != nullptr) put.copy.number = put.core.flagged.numbers.next();
    follow_plan(put);
}

// The announced receive that this put is for, with its sink open; null: none.
const wire::ReadyAgain* receive_of(Put& put, const Group& group, int tag,
                                   const device::Location& source) {
    Peer& peer = put.core.peer(put.peer);
    Announcements& announcements = peer.announcements;
    const wire::ReadyAgain* receive = announcements.of(peer.next_sent);
    const Bytes bytes = put.copy.bytes;
    if (receive == nullptr || !peer.lost.ok() || !fits(*receive, group, tag, bytes)) return nullptr;
    if (put.sink.base != nullptr && put.sink.handle.buffer_id == receive->buffer_id) return receive;
    close_sink(put.core, put.sink, source.gpu);
    if (!plan_put(put.core, put.peer, source, bytes)) return nullptr;
    follow_plan(put);
    put.sink = open_sink(put.core, announcements, source.gpu);
    return put.sink.base != nullptr ? receive : nullptr;
}

void give_up(Put& put) {
    Core& core = put.core;
    close_sink(core, put.sink, put.copy.gpu);
    put.~Put();
    core.executor.free_frame(&put);
}

// The device is ready for a copy.
class Ready {
  public:
    Ready(device::Device& device, const device::Copy& copy) : device_(device) {
        device.get_ready(copy);
    }
    ~Ready() { device_.let_go(); }
    Ready(const Ready&) = delete;
    Ready& operator=(const Ready&) = delete;

  private:
    device::Device& device_;
};

// Whether its sender would rather put into that buffer, if it knew of it.
bool is_worth_announcing(const Peer& peer, const Request& receive) {
    const device::Location& place = receive.location;
    return peer.last_get.put_is_better && place.gpu == peer.last_get.gpu && place.on_device() &&
           place.ipc != device::IpcKind::none && receive.buffer.contiguous();
}

Status tell_of(Core& core, const Request& receive, int to, std::uint32_t sequence) {
    Announcements& announcements = core.peer(to).announcements;
    const device::Location& place = receive.location;
    const wire::ReadyAgain ready{receive.context,
                                 receive.source,
                                 receive.tag,
                                 sequence,
                                 receive.buffer.bytes(),
                                 reinterpret_cast<std::uintptr_t>(receive.buffer.data()),
                                 place.buffer_id};
    if (announcements.named == place.buffer_id) return core.send(to, wire::kReadyAgain, ready);
    Result<device::IpcHandle> handle = core.device.export_memory(place);
    if (!handle.ok()) return std::move(handle).status();
    // The sender may map it: it is told when the program frees it.
    core.named.note(to, *handle);
    Status sent = core.send(to, wire::kReady, wire::Ready{ready, wire::encode(*handle)});
    if (sent.ok()) announcements.named = place.buffer_id;
    return sent;
}

}  // namespace

void announce(Core& core, Request& receive) {
    if (receive.peer < 0) return;
    Peer& peer = core.peer(receive.peer);
    if (!is_worth_announcing(peer, receive) || !core.matcher.would_be_next(receive) ||
        peer.announcements.coming != nullptr)  // of another thread
        return;
    // Else the message goes the usual way.
    const std::uint32_t sequence = peer.next_expected;
    if (!tell_of(core, receive, receive.peer, sequence).ok()) return;
    receive.announced = true;
    peer.announcements.expected = sequence;
}

void announce_too_late(Core& core, const Request& receive, int from, std::uint32_t sequence) {
    const Peer& peer = core.peer(from);
    if (is_worth_announcing(peer, receive) && peer.lost.ok())
        (void)tell_of(core, receive, from, sequence);  // nobody waits for it
}

bool put_announced(Core& core, const Group& group, const Buffer& buffer,
                   const device::Location& location, int to, int tag, Request*& request) {
    Peer& peer = core.peer(to);
    Announcements& announcements = peer.announcements;
    if (announcements.putting) return false;
    const bool looks = announcements.worth_looking();
    if (!looks && announcements.of(peer.next_sent) == nullptr) return false;
    if (request == nullptr) request = core.requests.create();
    void* const memory = request != nullptr ? core.executor.allocate_frame(sizeof(Put)) : nullptr;
    if (memory == nullptr) return false;
    // What needs no announcement is done while it comes.
    Put& put = *new (memory) Put(core, to, core.next_message_id(), *request);
    put.sink = sink_of_last_put(core, announcements, location, buffer.bytes());
    prepare(put, buffer, location.gpu);
    std::optional<Ready> ready;
    if (put.sink.base != nullptr) ready.emplace(core.device, put.copy);
    if (looks) look_for_announcement(peer);

    const wire::ReadyAgain* receive = receive_of(put, group, tag, location);
    if (receive == nullptr) {
        give_up(put);
        return false;
    }
    put.copy.destination = put.sink.base + (receive->address - put.sink.handle.base);
    announcements.putting = true;
    announcements.put_made();
    announcements.opened(put.sink.handle.buffer_id);
    const wire::PutRequest told{core.next_envelope(group, to, tag, buffer.bytes()), put.send_id,
                                put.copy.number};
    // The copy first: its engine works while the request is on its way.
    run_short_copy(put);
    Status sent = core.send(to, wire::kPutRequest, told);
    if (sent.ok()) return true;
    if (announcements.putting)
        put.untold = told;
    else  // it is over, and the bytes are there already
        core.on_peer_lost(to, sent);
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
    const Flag* const flag =
        put.flag_number != 0 ? sender.transport->put_flag(from, world_rank()) : nullptr;
    if (receive == nullptr || !receive->announced || announcements.coming != nullptr ||
        put.envelope.sequence != announcements.expected ||
        (put.flag_number != 0 && flag == nullptr)) {
        const Status wrong =
            failure(MPI_ERR_INTERN,
                    "rank {} put a message that was not announced, or names a flag that "
                    "cannot be",
                    from);
        log::error("{}", wrong.text());
        sender.early_followers.erase(put.send_id);
        if (receive != nullptr) finish_request(*receive, wrong);
        return;
    }
    receive->outcome = {put.envelope.source, put.envelope.tag, put.envelope.bytes, false};
    if (explain.on()) record_announced(from, put.envelope.bytes, *receive);
    announcements.coming = receive;
    announcements.coming_id = put.send_id;
    const wire::Chunk all{put.send_id, 0, put.envelope.bytes, 0, 0, 0, wire::kInPlace};
    if (flag != nullptr) flagged.awaited.await({from, flag, put.flag_number, all});
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
