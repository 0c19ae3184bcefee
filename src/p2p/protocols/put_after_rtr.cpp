// SPDX-License-Identifier: BSD-3-Clause
//
// Put after RTR (ready to receive). Between two GPUs a put is seen 1 us earlier than a get (H200), but
// its sender does not know where to; asking costs more than that. A blocking receive that finds no
// message has nothing else to do, so it says where its bytes go:
//
//     receiver, in MPI_Recv                     sender
//       | --- RTR [envelope n, address] --------> |
//       |                                         |  MPI_Send of envelope n: starts the copy
//       | <-- put request [envelope n] ---------- |  matched while the copy is under way
//       | <-- flag := number -------------------- |  the copy has ended
//
// What makes it safe: envelopes are taken in the sender's order, and the receive is the only posted
// one of its context that could take number n from that source. If n has the RTR's context, source and
// tag, it is matched with this receive and no other. If it has not, or left before the RTR came, or is
// too large, the RTR means nothing any more. A blocking receive (MPI_Sendrecv's, too) is not cancelled,
// so its buffer waits as long.
//
// Only where the planner prefers it: the receiver sends an RTR where its last message of that sender
// was got out of its memory and a put would have been better (Advice::rtr_pays); the sender puts if it
// has mapped the buffer, or when the RTRs that it could not use repay that.
//
// The flag lies in the sender's segment. The device raises it where the planner says so, behind large
// copies, so that both processes see the end at the same time; else the sender does.
#include "p2p/protocols/put_after_rtr.hpp"

#include "base/log.hpp"
#include "p2p/protocols/one_copy.hpp"
#include "transfer/mapping.hpp"
#include "transfer/mover.hpp"

#include <new>
#include <optional>
#include <utility>

namespace gantry::p2p {
namespace {

using transfer::Flag;

// About a microsecond of looking at shared memory, what a put saves. In a ping-pong of two H200s 99
// of 100 RTRs come by then, after 0.25 us; within 12 looks half of them came.
constexpr int kLooks = 60;
// The planner is asked about an opening so rarely: each time is a question of its own.
constexpr int kUnusedBetweenQuestions = 64;

bool fits(const wire::RtrSameBuffer& receive, const Group& group, int tag, Bytes bytes) {
    return receive.context == group.context && receive.source == group.source_number(group.rank) &&
           (receive.tag == MPI_ANY_TAG || receive.tag == tag) && bytes > 0 && bytes <= receive.room;
}

// One put into the buffer of an RTR.
struct Put : OneCopy {
    using OneCopy::OneCopy;
    transfer::Mapping sink;                      // its allocation
    Flag* flag = nullptr;                        // null: told by a chunk
    std::optional<wire::PutRequest> unsent_rts;  // could not leave beside the copy

    Status ended() {
        messages.with(peer).rtr.putting = false;
        // Its envelope is counted: without it the peer understands nothing that comes behind it.
        if (unsent_rts && messages.lost(peer).ok()) {
            Status sent = messages.send(peer, wire::kPutRequest, *unsent_rts);
            if (!sent.ok()) messages.context.messages.on_peer_lost(peer, sent);
        }
        const Status& lost = messages.lost(peer);
        Status outcome = lost.ok() ? status() : lost;
        Status told;
        if (outcome.ok() && flag != nullptr)
            transfer::raise(*flag, copy.number);
        else if (outcome.ok())
            outcome = told = messages.send(
                peer, wire::kChunk, wire::Chunk{send_id, 0, copy.bytes, 0, 0, 0, wire::kInPlace});
        else
            tell_failure(messages, peer, send_id, outcome, wire::For::receiver);
        if (!told.ok()) log::error("rank {} was not told of a put's end: {}", peer, told.text());
        sink = {};
        return outcome;
    }
};

// The answer to a put of those bytes into the allocation of the last RTR, which the device may access
// so; null: no put.
const plan::Selection* select_put(Messages& messages, int to, const device::Location& source,
                                  Bytes bytes, device::Access access) {
    transfer::Context& context = messages.context;
    ReadyToReceive& rtr = messages.with(to).rtr;
    const device::IpcHandle& sink = rtr.handle();
    if (access == device::Access::never || access == device::Access::no_descriptor) return nullptr;
    transfer::Endpoint& endpoint = messages.endpoint(to);
    plan::Facts facts = context.facts_for(endpoint, source, true, &sink.gpu);
    if (context.is_time_sliced(facts)) return nullptr;
    facts.rtr = true;
    facts.put_open = access == device::Access::open;
    facts.ipc_open = endpoint.memory.is_asked_for(source.buffer_id);
    if (!facts.put_open) {
        facts.put_uses = rtr.unused(sink.buffer_id);
        if (facts.put_uses % kUnusedBetweenQuestions != 0) return nullptr;
        facts.sender_busy = context.device.pending();
        facts.sender_first = context.device.opens_first(sink.kind, source.gpu, sink.gpu);
        facts.sink_large = sink.size >= plan::kLargeMapping;
    }
    plan::Question question;
    question.bytes = bytes;
    question.source = {source.kind, source.ipc, true};
    question.sink = {device::MemoryKind::device, sink.kind, true};
    question.sink_known = true;
    question.eager_credit = false;
    const plan::Selection& selection = context.selections.select(question, facts);
    const plan::Plan& plan = selection.plan();
    const bool puts =
        plan.protocol == plan::Protocol::ipc && plan.executor == plan::Executor::sender;
    return puts ? &selection : nullptr;
}

// As the planner says of a put from there.
void follow(Put& put, const plan::Selection& selection) {
    put.copy.engine = transfer::engine_of(selection.plan());
    put.copy.notice = transfer::notice_of(selection.plan());
    const bool by_device = put.flag != nullptr && put.copy.notice == device::Notice::flag;
    put.copy.word = by_device ? &put.flag->number : nullptr;
}

using device::Opening;

// Opens the allocation of the last RTR, if a put into it is what the planner says.
void open_sink(Put& put, const device::Location& source, Opening opening) {
    ReadyToReceive& rtr = put.messages.with(put.peer).rtr;
    device::Device& device = put.messages.device;
    const device::IpcHandle& sink = rtr.handle();
    const device::Access access = device.access(sink, source.gpu);
    if (opening == Opening::known_only && access != device::Access::open) return;
    const plan::Selection* const selection =
        select_put(put.messages, put.peer, source, put.copy.bytes, access);
    if (selection == nullptr) return;
    follow(put, *selection);
    if (access == device::Access::open)
        put.sink = transfer::Mapping::of_open(device, sink, source.gpu);
    if (put.sink.is_open() || opening == Opening::known_only) return;
    Result<transfer::Mapping> mapping = transfer::Mapping::open(device, sink, source.gpu);
    if (mapping.ok()) put.sink = std::move(*mapping);
}

void look_for_rtr(Conversation& peer) {
    peer.rtr.looked();
    for (int look = 0; look < kLooks && peer.rtr.of(peer.sequence.next_to_send()) == nullptr;
         ++look)
        peer.endpoint.transport->progress();
}

// All that the put wants but where to.
void prepare(Put& put, const Buffer& buffer, int gpu) {
    transfer::Context& context = put.messages.context;
    transfer::Endpoint& to = put.messages.endpoint(put.peer);
    put.copy.source = buffer.data();
    put.copy.bytes = buffer.bytes();
    put.copy.gpu = gpu;
    // Null: chunks tell of the ends of puts.
    put.flag = context.own_flags(to).empty() ? nullptr : to.own_shared->put_flag(put.peer);
    if (put.flag != nullptr) put.copy.number = context.flags.numbers.next();
}

// The RTR that this put is for, with its sink open; null: none.
const wire::RtrSameBuffer* rtr_of(Put& put, const Group& group, int tag,
                                  const device::Location& source) {
    Conversation& peer = put.messages.with(put.peer);
    const wire::RtrSameBuffer* receive = peer.rtr.of(peer.sequence.next_to_send());
    if (receive == nullptr || !peer.endpoint.lost.ok() ||
        !fits(*receive, group, tag, put.copy.bytes))
        return nullptr;
    if (put.sink.is_open() && put.sink.handle().buffer_id == receive->buffer_id) return receive;
    put.sink = {};
    open_sink(put, source, Opening::allowed);
    return put.sink.is_open() ? receive : nullptr;
}

void give_up(Put& put) {
    Messages& messages = put.messages;
    put.~Put();
    messages.executor.free_frame(&put);
}

// The device is ready for a copy.
class Readied {
  public:
    Readied(device::Device& device, const device::Copy& copy) : device_(device) {
        device.get_ready(&copy);
    }
    ~Readied() { device_.get_ready(nullptr); }
    Readied(const Readied&) = delete;
    Readied& operator=(const Readied&) = delete;

  private:
    device::Device& device_;
};

// Whether its sender would rather put into that buffer, if it knew of it.
bool rtr_pays(const Messages& messages, const Conversation& peer, const Request& receive) {
    const device::Location& place = receive.location;
    return messages.context.tuning.mechanisms.ready_to_receive && place.on_device() &&
           peer.rtr.pays(place.gpu) && place.ipc != device::IpcKind::none &&
           receive.buffer.contiguous();
}

Status tell_of(Messages& messages, const Request& receive, int to, std::uint32_t sequence) {
    ReadyToReceive& rtr = messages.with(to).rtr;
    const device::Location& place = receive.location;
    const wire::RtrSameBuffer ready{receive.context,
                                    receive.source,
                                    receive.tag,
                                    sequence,
                                    receive.buffer.bytes(),
                                    reinterpret_cast<std::uintptr_t>(receive.buffer.data()),
                                    place.buffer_id};
    if (rtr.named == place.buffer_id) return messages.send(to, wire::kRtrSameBuffer, ready);
    Result<device::IpcHandle> handle = messages.device.export_memory(place);
    if (!handle.ok()) return std::move(handle).status();
    // The sender may map it: it is told when the program frees it.
    messages.context.exports.note(to, *handle);
    Status sent = messages.send(to, wire::kRtr, wire::Rtr{ready, *handle});
    if (sent.ok()) rtr.named = place.buffer_id;
    return sent;
}

}  // namespace

void send_rtr(Messages& messages, Request& receive) {
    if (receive.peer < 0 || !receive.location.on_device()) return;
    Conversation& peer = messages.with(receive.peer);
    if (!rtr_pays(messages, peer, receive) || !messages.matcher.would_be_next(receive) ||
        peer.rtr.coming != nullptr)  // of another thread
        return;
    // Else the message goes the usual way.
    const std::uint32_t sequence = peer.sequence.next_expected();
    if (!tell_of(messages, receive, receive.peer, sequence).ok()) return;
    receive.rtr_sent = true;
    peer.rtr.expected = sequence;
}

void send_late_rtr(Messages& messages, const Request& receive, int from, std::uint32_t sequence) {
    const Conversation& peer = messages.with(from);
    if (rtr_pays(messages, peer, receive) && peer.endpoint.lost.ok())
        (void)tell_of(messages, receive, from, sequence);  // nobody waits for it
}

bool put_after_rtr(Messages& messages, const Group& group, const Buffer& buffer,
                   const device::Location& location, int to, int tag, Request*& request) {
    Conversation& peer = messages.with(to);
    ReadyToReceive& rtr = peer.rtr;
    if (rtr.putting || !messages.context.tuning.mechanisms.ready_to_receive) return false;
    const bool looks = rtr.worth_looking();
    if (!looks && rtr.of(peer.sequence.next_to_send()) == nullptr) return false;
    if (request == nullptr) request = messages.requests.create();
    void* const memory =
        request != nullptr ? messages.executor.allocate_frame(sizeof(Put)) : nullptr;
    if (memory == nullptr) return false;
    // What needs no RTR is done while it comes.
    Put& put = *new (memory) Put(messages, to, messages.outgoing.next_id(), *request);
    prepare(put, buffer, location.gpu);
    open_sink(put, location, Opening::known_only);
    std::optional<Readied> ready;
    if (put.sink.is_open()) ready.emplace(messages.device, put.copy);
    if (looks) look_for_rtr(peer);

    const wire::RtrSameBuffer* receive = rtr_of(put, group, tag, location);
    if (receive == nullptr) {
        give_up(put);
        return false;
    }
    put.copy.destination = put.sink.at(receive->address);
    rtr.putting = true;
    rtr.put_made();
    rtr.opened(put.sink.handle().buffer_id);
    const wire::PutRequest told{messages.next_envelope(group, to, tag, buffer.bytes(), request),
                                put.send_id, put.copy.number};
    if (plan::Explain* const ledger = messages.explain.ledger()) [[unlikely]]
        if (const plan::Selection* selection =
                select_put(messages, to, location, buffer.bytes(), device::Access::open))
            ledger->record(*selection, to, false);
    // The copy first: its engine works while the request is on its way.
    run_one_copy(put);
    Status sent = messages.send_envelope(to, wire::kPutRequest, told);
    if (sent.ok()) return true;
    if (rtr.putting)
        put.unsent_rts = told;
    else  // it is over, and the bytes are there already
        messages.context.messages.on_peer_lost(to, sent);
    return true;
}

void Messages::on_rtr(int from, const wire::Rtr& rtr, transport::ConstSpan) {
    hear_rtr(from, rtr.receive, &rtr.handle);
}

void Messages::on_rtr_same_buffer(int from, const wire::RtrSameBuffer& rtr, transport::ConstSpan) {
    hear_rtr(from, rtr, nullptr);
}

void Messages::hear_rtr(int from, const wire::RtrSameBuffer& receive, const wire::Handle* handle) {
    Conversation& receiver = with(from);
    ReadyToReceive& rtr = receiver.rtr;
    if (!rtr.hear(receive, handle)) return;
    if (receive.sequence + 1 != receiver.sequence.next_to_send()) return;
    // Too late by a moment. Worth a wait where the buffer was put into before, or may be now.
    if (rtr.last_put == receive.buffer_id ||
        rtr.unused(receive.buffer_id) % kUnusedBetweenQuestions == kUnusedBetweenQuestions - 1)
        rtr.came_late();
}

void Messages::on_put_request(int from, const wire::PutRequest& put) {
    Conversation& sender = with(from);
    sender.sequence.rts_taken(put.send_id);
    Request* receive = arrive(from, put.envelope);
    transport::SharedSegment* const shared = sender.endpoint.shared;
    const Flag* const flag =
        put.flag_number != 0 && shared != nullptr ? shared->put_flag(context.world_rank) : nullptr;
    if (receive == nullptr || !receive->rtr_sent || sender.rtr.coming != nullptr ||
        put.envelope.sequence != sender.rtr.expected || (put.flag_number != 0 && flag == nullptr)) {
        const Status wrong =
            failure(MPI_ERR_INTERN,
                    "rank {} put a message that no RTR asked for, or names a flag that "
                    "cannot be",
                    from);
        log::error("{}", wrong.text());
        (void)sender.sequence.take_followers(put.send_id);
        if (receive != nullptr) finish_request(*receive, wrong);
        return;
    }
    receive->outcome = {put.envelope.source, put.envelope.tag, put.envelope.bytes, false};
    if (plan::Explain* const ledger = explain.ledger()) [[unlikely]] {
        // What the sender chose, as this side sees it.
        plan::Question question;
        question.bytes = put.envelope.bytes;
        question.source = question.sink = transfer::end_of(receive->location, receive->buffer);
        question.sink_known = true;
        question.eager_credit = false;
        plan::Facts facts = context.facts_for(sender.endpoint, receive->location, false, nullptr);
        facts.rtr = facts.put_open = true;
        ledger->record(context.selections.select(question, facts), from, true);
    }
    sender.rtr.coming = receive;
    sender.rtr.coming_id = put.send_id;
    const wire::Chunk all{put.send_id, 0, put.envelope.bytes, 0, 0, 0, wire::kInPlace};
    if (flag != nullptr) context.flags.awaited.await({from, flag, put.flag_number, all});
    take_followers(from, put.send_id);
}

bool Messages::end_of_put(int from, std::uint64_t send_id, const Status& how) {
    ReadyToReceive& rtr = with(from).rtr;
    if (rtr.coming == nullptr || rtr.coming_id != send_id) return false;
    Request& receive = *std::exchange(rtr.coming, nullptr);
    if (how.ok()) count_received(plan::Protocol::ipc, receive);
    finish_request(receive, how);
    return true;
}

}  // namespace gantry::p2p
