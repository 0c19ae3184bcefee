// SPDX-License-Identifier: BSD-3-Clause
//
// The sender's side of a message told by flags, and the short way of one like the last: what the
// planner said of that, and its request to send, hold for the next.
#include "p2p/offer.hpp"
#include "p2p/protocols/flagged.hpp"
#include "p2p/protocols/stage.hpp"

#include "base/log.hpp"

#include <limits>
#include <new>
#include <utility>

namespace gantry::p2p {

FlaggedSend::Piece::Piece(FlaggedSend& of) : Completion(of.core.executor), message(of) {}

FlaggedSend::FlaggedSend(Core& in, Request& of, const Peer::FlaggedOffer& offer)
    : core(in),
      request(of),
      pieces{0, of.buffer.bytes(), offer.chunk},
      notice(offer.notice),
      copies(pieces.count()) {
    static_assert(sizeof(FlaggedSend) % alignof(Piece) == 0);
    for (int index = 0; index < copies; ++index)
        new (&copy(index)) Piece(*this);
}

FlaggedSend::~FlaggedSend() {
    for (int index = 0; index < copies; ++index)
        copy(index).~Piece();
}

namespace {

void end(FlaggedSend& message) {
    Core& core = message.core;
    Request& request = message.request;
    Status outcome = std::move(message.failure);
    if (!outcome.ok() && message.announced && core.peer(request.peer).lost.ok()) {
        const Status told =
            tell_failure(core, request.peer, message.pieces.send_id, outcome, wire::For::receiver);
        if (!told.ok())
            log::error("rank {} was not told of a failed send: {}", request.peer, told.text());
    }
    message.~FlaggedSend();
    core.executor.free_frame(&message);
    core.finish_request(request, std::move(outcome));
    core.operations.end();
}

void start_more(FlaggedSend& message);

void piece_ended(Resumable& waiting) {
    auto& piece = static_cast<FlaggedSend::Piece&>(Completion::of(waiting));
    FlaggedSend& message = piece.message;
    if (message.failure.ok()) message.failure = piece.status();
    if (message.failure.ok()) message.failure = message.core.peer(message.request.peer).lost;
    Flag& flag = message.flags[message.pieces.flag_of(piece.slot.unit)];
    if (message.failure.ok()) raise(flag, message.number);
    message.slots->settle(piece.slot);
    // Nobody else gives back what nobody knows of.
    const bool known = shows(flag, message.number) ||
                       (message.flows && has_come(&flag, message.number, 0, message.pieces.bytes) ==
                                             message.pieces.bytes);
    if (!message.announced || !known) message.slots->take_back(piece.slot);
    --message.running;
    start_more(message);
    if (message.running == 0) end(message);
}

device::Copy copy_of(const FlaggedSend& message, const wire::Chunk& chunk) {
    device::Copy copy;
    copy.destination = message.slots->memory().data() + chunk.slot_offset;
    copy.source = message.request.buffer.data() + chunk.offset;
    copy.bytes = chunk.bytes;
    copy.gpu = message.request.location.gpu;
    copy.engine = device::Engine::d2h;
    copy.notice = message.notice;
    copy.number = message.number;
    Flag& flag = message.flags[message.pieces.flag_of(chunk.unit)];
    if (may_flow(message.request.buffer.data(), message.pieces.bytes))
        copy.pieces = {.size = kFlowPiece,
                       .message = chunk.offset == 0 ? message.pieces.bytes : 0,
                       .words = flag.pieces,
                       .in_row = transport::kPiecesOfSlotUnit,
                       .row = sizeof flag};
    return copy;
}

Slot slot_of(const FlaggedSend& message, const wire::Chunk& chunk) {
    return {message.slots->memory().data() + chunk.slot_offset, chunk.unit, chunk.units,
            SlotUse::ahead};
}

void start(FlaggedSend& message, int index) {
    FlaggedSend::Piece& piece = message.copy(index);
    const wire::Chunk chunk = message.pieces.piece(index);
    piece.slot = slot_of(message, chunk);
    message.slots->lend_early(piece.slot, message.request.peer);
    device::Copy copy = copy_of(message, chunk);
    // A piece right behind one with a number waits longer than behind one with an event.
    if (message.pieces.count() == 1)
        copy.word = &message.flags[message.pieces.flag_of(chunk.unit)].number;
    ++message.running;
    piece.then(piece_ended);
    message.core.device.copy(copy, piece);
}

// A few at a time: each is a call, and until the last of those is made nobody sees that the first
// piece is there.
void start_more(FlaggedSend& message) {
    while (message.started < message.pieces.count()) {
        if (!message.announced || !message.failure.ok())
            message.slots->release(slot_of(message, message.pieces.piece(message.started++)));
        else if (message.running < kFewPieces)
            start(message, message.started++);
        else
            return;
    }
}

// All of it as one piece, by a kernel that stays. False: none does.
bool flow(FlaggedSend& message) {
    Peer& to = message.core.peer(message.request.peer);
    // To who takes it the whole way it is one piece: several would overlap, if no others do.
    const bool alone = message.core.flagged.sends.next(nullptr) == &message;
    const bool overlaps =
        message.pieces.count() == 1 || !alone || (to.last_flagged_id != 0 && !to.last_answered);
    to.last_flagged_id = message.pieces.send_id;
    to.last_answered = false;
    if (!overlaps || !message.core.device.would_flow(device::Engine::d2h)) return false;
    FlaggedPieces whole = message.pieces;
    whole.chunk = whole.bytes;
    const wire::Chunk chunk = whole.piece(0);
    const device::Copy copy = copy_of(message, chunk);
    FlaggedSend::Piece& piece = message.copy(0);
    if (copy.pieces.size == 0 || !message.core.device.flow(copy, piece)) return false;
    message.flows = true;
    message.pieces = whole;
    piece.slot = slot_of(message, chunk);
    message.slots->lend_early(piece.slot, message.request.peer);
    ++message.running;
    piece.then(piece_ended);
    return true;
}

}  // namespace

std::span<Flag> own_flags(Core& core, int to) {
    const std::span<Flag> flags = core.peer(to).transport->flags(core.world_rank());
    if (!flags.empty() && !std::exchange(core.flagged.pinned, true)) {
        Status pinned = core.device.pin(flags.data(), flags.size_bytes());
        if (!pinned.ok()) log::warn("ends of copies are told by the processor: {}", pinned.text());
    }
    return flags;
}

namespace {

// Null: there are no flags, or no slots just now, or there were none for the last large one.
FlaggedSend* prepare(Core& core, Request& send, const Peer::FlaggedOffer& offer) {
    Result<SlotPool*> slots = core.pool(transport::Pool::device_slots);  // makes our segment
    if (!slots.ok()) return nullptr;
    const std::span<Flag> flags = own_flags(core, send.peer);
    if (flags.empty()) return nullptr;
    int& by_chunks = core.peer(send.peer).go_by_chunks;
    if (offer.bytes > kLargeFlagged && by_chunks > 0) {
        --by_chunks;
        return nullptr;
    }
    const Slot all = (*slots)->try_acquire(offer.bytes, SlotUse::ahead);
    if (all.units == 0) {
        if (offer.bytes > kLargeFlagged) by_chunks = kGoByChunks;
        return nullptr;
    }
    const auto copies = static_cast<int>(divide_up(offer.bytes, offer.chunk));
    const std::uint32_t flag = all.unit - (*slots)->first(SlotUse::ahead);
    const bool named = flag + all.units <= kSlotFlags &&
                       all.unit <= std::numeric_limits<decltype(wire::SlotFlag::unit)>::max();
    void* memory = named ? core.executor.allocate_frame(FlaggedSend::frame_bytes(copies)) : nullptr;
    if (memory == nullptr) {
        (*slots)->release(all);
        return nullptr;
    }
    auto* message = new (memory) FlaggedSend(core, send, offer);
    message->slots = *slots;
    message->flags = flags.data();
    message->pieces.unit = all.unit;
    message->pieces.flag = flag;
    message->number = core.flagged.numbers.next();
    return message;
}

wire::SlotFlag named(const FlaggedSend& message) {
    return {message.number, static_cast<std::uint16_t>(message.pieces.unit),
            static_cast<std::uint8_t>(message.pieces.flag),
            static_cast<std::uint8_t>(message.flows)};
}

// `announce` sends the request. False: it could not leave, and the first copy's end ends the
// message.
template <class Announce>
bool launch(FlaggedSend& message, const Announce& announce) {
    Core& core = message.core;
    core.operations.begin();
    core.flagged.sends.push_back(message);
    core.hold_memory(message.request);
    if (!flow(message)) start(message, 0);
    message.started = 1;
    Status left = announce();
    message.announced = left.ok();
    if (!left.ok()) {
        core.take_back_envelope(message.request.peer);
        message.failure = std::move(left);
    }
    start_more(message);
    return message.announced;
}

bool may_be_flagged(const Core& core, const Peer& to, const Outgoing& message,
                    const wire::Plan& offer) {
    if (!to.facts.shared_memory || to.facts.self || !message.location.on_device() ||
        !message.buffer.contiguous() || message.question.synchronous || message.bytes == 0 ||
        core.executor.hands_over() || !wire::all_ahead(offer, message.bytes))
        return false;
    const Bytes pieces = divide_up(message.bytes, offer.chunk);
    return pieces == 1 || (pieces <= kMostFlagged && offer.chunk % kDeviceSlotUnit == 0);
}

// Behind another request to that rank that says more the receiver would repeat the wrong one. Whether this
// process has work pending makes its mappings dearer.
bool like_the_last(Core& core, const Peer& to, const Request& send, bool in_budget) {
    const Peer::FlaggedOffer& last = to.last_flagged;
    return last.source == send.location.buffer_id && last.source != 0 &&
           last.bytes == send.buffer.bytes() && last.budget == in_budget &&
           last.request_version == to.request_version && send.buffer.contiguous() &&
           !core.explain.on() && !core.executor.hands_over() &&
           (to.request_sent.busy != 0) == (core.tuning.ipc && core.device.pending()) &&
           // Else the whole way counts it.
           (to.go_by_chunks == 0 || last.bytes <= kLargeFlagged) &&
           core.shared_gpu(send.location.gpu).used() == 0;
}

// Where its receiver would rather map the memory it says so when that pays, which ends the repeating.
void remember(Core& core, const Request& send, const plan::Question& question,
              const wire::RequestToSend& rts, Peer::FlaggedOffer offer) {
    Peer& to = core.peer(send.peer);
    const bool same_again = rts.gpu_used == 0 && !question.sink_expected;
    offer.source = same_again ? send.location.buffer_id : 0;
    offer.request_version = to.request_version;
    to.last_flagged = offer;
}

}  // namespace

bool send_flagged(Core& core, Outgoing& message, const wire::Envelope& envelope) {
    const wire::Plan chosen = wire::encode(message.choice.plan);
    if (!may_be_flagged(core, core.peer(message.peer), message, chosen)) return false;
    Request& request = *message.request;
    request.buffer = message.buffer;
    request.location = message.location;
    request.peer = message.peer;
    const Peer::FlaggedOffer offer{.bytes = message.bytes,
                                   .chunk = chosen.chunk,
                                   .budget = message.question.budget,
                                   .notice = notice_of(message.choice.plan)};
    FlaggedSend* const flagged = prepare(core, request, offer);
    if (flagged == nullptr) return false;
    flagged->pieces.send_id = message.id;
    wire::RequestToSend rts;
    // What names the memory is looked up while the first copy is under way.
    const bool announced = launch(*flagged, [&] {
        rts = request_to_send(core, message, envelope);
        rts.set(named(*flagged));
        return core.request(request.peer, rts);
    });
    if (announced) remember(core, request, message.question, rts, offer);
    core.remove_outgoing(message.id);
    return true;
}

bool send_flagged_again(Core& core, const Group& group, int tag, bool in_budget, Request& send) {
    const Peer& to = core.peer(send.peer);
    if (!like_the_last(core, to, send, in_budget)) return false;
    FlaggedSend* const flagged = prepare(core, send, to.last_flagged);
    if (flagged == nullptr) return false;
    flagged->pieces.send_id = core.next_message_id();
    launch(*flagged, [&] {
        const wire::Envelope envelope =
            core.next_envelope(group, send.peer, tag, send.buffer.bytes());
        return core.send(send.peer, wire::kRequestAgain,
                         wire::RequestAgain{envelope, flagged->pieces.send_id,
                                            reinterpret_cast<std::uintptr_t>(send.buffer.data()),
                                            named(*flagged)});
    });
    return true;
}

const Request* flagged_send(Core& core, std::uint64_t id) {
    IntrusiveList<FlaggedSend>& sends = core.flagged.sends;
    for (FlaggedSend* each = sends.next(nullptr); each != nullptr; each = sends.next(each))
        if (each->pieces.send_id == id) return &each->request;
    return nullptr;
}

bool fail_flagged_send(Core& core, std::uint64_t id, const Status& why) {
    IntrusiveList<FlaggedSend>& sends = core.flagged.sends;
    for (FlaggedSend* each = sends.next(nullptr); each != nullptr; each = sends.next(each)) {
        if (each->pieces.send_id != id) continue;
        if (each->failure.ok()) each->failure = why;
        return true;
    }
    return false;
}

}  // namespace gantry::p2p
