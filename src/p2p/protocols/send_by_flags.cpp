// SPDX-License-Identifier: BSD-3-Clause
//
// The sender's side of a message whose arrival is notified by flags.
#include "p2p/offer.hpp"
#include "p2p/protocols/flagged_message.hpp"
#include "transfer/mover.hpp"

#include <limits>
#include <new>
#include <utility>

namespace gantry::p2p {

SendByFlags::Piece::Piece(SendByFlags& of) : Completion(of.messages.executor), message(of) {}

SendByFlags::SendByFlags(Messages& in, Request& of, const plan::Plan& offer)
    : messages(in),
      request(of),
      pieces{0, of.buffer.bytes(), offer.chunk},
      staging{{of.buffer, of.location}, offer.source_engine, transfer::notice_of(offer)},
      copies(pieces.count()) {
    static_assert(sizeof(SendByFlags) % alignof(Piece) == 0);
    for (int index = 0; index < copies; ++index)
        new (&copy(index)) Piece(*this);
}

SendByFlags::~SendByFlags() {
    for (int index = 0; index < copies; ++index)
        copy(index).~Piece();
}

namespace {

void end(SendByFlags& message) {
    Messages& messages = message.messages;
    Request& request = message.request;
    Status outcome = std::move(message.failure);
    if (!outcome.ok() && message.rts_left)
        tell_failure(messages, request.peer, message.pieces.send_id, outcome, wire::For::receiver);
    if (outcome.ok()) messages.counted.staged += message.pieces.bytes;
    message.~SendByFlags();
    messages.executor.free_frame(&message);
    messages.finish_request(request, std::move(outcome));
    messages.context.operations.end();
}

void start_more(SendByFlags& message);

void piece_ended(Resumable& waiting) {
    auto& piece = static_cast<SendByFlags::Piece&>(Completion::of(waiting));
    SendByFlags& message = piece.message;
    message.messages.context.moved("into a slot", piece.begin, message.request.location.gpu,
                                   piece.bytes);
    if (message.failure.ok()) message.failure = piece.status();
    if (message.failure.ok()) message.failure = message.messages.lost(message.request.peer);
    Flag& flag = message.flags[message.pieces.flag_of(piece.slot.unit)];
    if (message.failure.ok()) transfer::raise(flag, message.number);
    message.slots->settle(piece.slot);
    // Nobody else gives back what nobody knows of.
    const bool known =
        transfer::shows(flag, message.number) ||
        (message.cuts_through && transfer::has_come(&flag, message.number, 0,
                                                    message.pieces.bytes) == message.pieces.bytes);
    if (!message.rts_left || !known) message.slots->take_back(piece.slot);
    --message.running;
    start_more(message);
    if (message.running == 0) end(message);
}

device::Copy copy_of(const SendByFlags& message, const wire::Chunk& chunk) {
    device::Copy copy =
        transfer::device_to_slot(message.staging, chunk.offset, chunk.bytes,
                                 message.slots->memory().data() + chunk.slot_offset);
    copy.number = message.number;
    Flag& flag = message.flags[message.pieces.flag_of(chunk.unit)];
    if (may_cut_through(message.messages, message.request.buffer.data(), message.pieces.bytes))
        copy.pieces = {.size = transfer::kCutThroughPiece,
                       .message = chunk.offset == 0 ? message.pieces.bytes : 0,
                       .words = flag.pieces,
                       .in_row = transport::kPiecesOfSlotUnit,
                       .row = sizeof flag};
    return copy;
}

Slot slot_of(const SendByFlags& message, const wire::Chunk& chunk) {
    return {message.slots->memory().data() + chunk.slot_offset, chunk.unit, chunk.units,
            SlotUse::ahead};
}

void start(SendByFlags& message, int index) {
    SendByFlags::Piece& piece = message.copy(index);
    const wire::Chunk chunk = message.pieces.piece(index);
    piece.slot = slot_of(message, chunk);
    piece.bytes = chunk.bytes;
    piece.begin = message.messages.context.begins();
    message.slots->grant_early(piece.slot, message.request.peer);
    device::Copy copy = copy_of(message, chunk);
    // A piece right behind one with a number waits longer than behind one with an event.
    if (message.pieces.count() == 1)
        copy.word = &message.flags[message.pieces.flag_of(chunk.unit)].number;
    ++message.running;
    piece.then(piece_ended);
    message.messages.device.copy(copy, piece);
}

// A few at a time: each is a call, and until the last of those is made nobody sees that the first
// piece is there.
void start_more(SendByFlags& message) {
    while (message.started < message.pieces.count()) {
        if (!message.rts_left || !message.failure.ok())
            message.slots->release(slot_of(message, message.pieces.piece(message.started++)));
        else if (message.running < transfer::kFewPieces)
            start(message, message.started++);
        else
            return;
    }
}

// All of it as one piece, by the persistent kernel. False: none is there.
bool cut_through(SendByFlags& message) {
    Messages& messages = message.messages;
    Conversation& to = messages.with(message.request.peer);
    // To a receiver that copies the whole message it is one piece: several would overlap, if no others do.
    const bool alone = messages.sends_by_flags.next(nullptr) == &message;
    const bool overlaps = message.pieces.count() == 1 || !alone ||
                          (to.last_id_by_flags != 0 && !to.last_was_answered);
    to.last_id_by_flags = message.pieces.send_id;
    to.last_was_answered = false;
    if (!overlaps || !messages.device.would_cut_through(device::Engine::d2h)) return false;
    FlagPieces whole = message.pieces;
    whole.chunk = whole.bytes;
    const wire::Chunk chunk = whole.piece(0);
    const device::Copy copy = copy_of(message, chunk);
    SendByFlags::Piece& piece = message.copy(0);
    if (copy.pieces.size == 0 || !messages.device.cut_through(copy, &piece)) return false;
    message.cuts_through = true;
    message.pieces = whole;
    piece.slot = slot_of(message, chunk);
    piece.bytes = chunk.bytes;
    piece.begin = messages.context.begins();
    message.slots->grant_early(piece.slot, message.request.peer);
    ++message.running;
    piece.then(piece_ended);
    return true;
}

bool may_go_by_flags(const Messages& messages, const transfer::Endpoint& to,
                     const Departure& departure, const plan::Plan& offer) {
    if (!messages.context.tuning.mechanisms.notify_flags || !to.facts.shared_memory ||
        to.facts.self || !departure.location.on_device() || !departure.buffer.contiguous() ||
        departure.synchronous || departure.bytes() == 0 || messages.executor.hands_over() ||
        !wire::all_ahead(offer, departure.bytes()))
        return false;
    const Bytes pieces = divide_up(departure.bytes(), offer.chunk);
    return pieces == 1 ||
           (pieces <= transfer::kMostPiecesByFlags && offer.chunk % transfer::kDeviceSlotUnit == 0);
}

// Null: there are no flags, or no slots just now, or there were none for the last large one.
SendByFlags* prepare(Messages& messages, Conversation& to, const Departure& departure,
                     const plan::Plan& offer, Request& send) {
    Result<SlotPool*> slots =
        messages.context.pools.own(transport::Pool::device_slots);  // makes our segment
    if (!slots.ok()) return nullptr;
    const std::span<Flag> flags = messages.context.own_flags(to.endpoint);
    if (flags.empty()) return nullptr;
    const Bytes bytes = departure.bytes();
    const bool large = bytes > transfer::kLargeByFlags;
    if (large && to.large_by_chunks > 0) {
        --to.large_by_chunks;
        return nullptr;
    }
    const Slot all = (*slots)->try_acquire(bytes, SlotUse::ahead);
    if (all.units == 0) {
        if (large) to.large_by_chunks = transfer::kGoByChunks;
        return nullptr;
    }
    const auto copies = static_cast<int>(divide_up(bytes, offer.chunk));
    const std::uint32_t flag = all.unit - (*slots)->first(SlotUse::ahead);
    const bool nameable = flag + all.units <= transfer::kSlotFlags &&
                          all.unit <= std::numeric_limits<decltype(wire::SlotFlag::unit)>::max();
    void* memory =
        nameable ? messages.executor.allocate_frame(SendByFlags::frame_bytes(copies)) : nullptr;
    if (memory == nullptr) {
        (*slots)->release(all);
        return nullptr;
    }
    auto* message = new (memory) SendByFlags(messages, send, offer);
    message->slots = *slots;
    message->flags = flags.data();
    message->pieces.send_id = messages.outgoing.next_id();
    message->pieces.unit = all.unit;
    message->pieces.flag = flag;
    message->number = messages.context.flags.numbers.next();
    return message;
}

wire::SlotFlag slot_flag_of(const SendByFlags& message) {
    return {message.number, static_cast<std::uint16_t>(message.pieces.unit),
            static_cast<std::uint8_t>(message.pieces.flag),
            static_cast<std::uint8_t>(message.cuts_through)};
}

// The RTS leaves while the first copy is under way.
Status send_its_rts(Messages& messages, const SendByFlags& message, const Departure& departure,
                    plan::Selection& offer, const wire::Envelope& envelope, bool busy) {
    const Conversation& to = messages.with(departure.to);
    const std::uint64_t id = message.pieces.send_id;
    // Whether this process has work pending makes its mappings dearer, so the template must say the same.
    if (rts_holds(messages, departure, offer) && (to.rts_sent.busy != 0) == busy)
        return messages.send_envelope(
            departure.to, wire::kRtsFromTemplate,
            wire::RtsFromTemplate{envelope, id,
                                  reinterpret_cast<std::uintptr_t>(departure.buffer.data()),
                                  slot_flag_of(message)});
    wire::Rts rts = make_rts(messages, departure, offer, id, envelope);
    if (rts.uses_driver != 0) rts.busy = busy ? 1 : 0;
    rts.set(slot_flag_of(message));
    GANTRY_TRY(messages.send_rts(departure.to, rts));
    remember_rts(messages, departure, offer, rts);
    return success();
}

}  // namespace

bool send_by_flags(Messages& messages, const Departure& departure, plan::Selection& offer,
                   const Group& group, int tag, Request& request) {
    Conversation& to = messages.with(departure.to);
    if (!may_go_by_flags(messages, to.endpoint, departure, offer.plan())) return false;
    SendByFlags* const message = prepare(messages, to, departure, offer.plan(), request);
    if (message == nullptr) return false;
    const bool busy = is_busy(messages);  // before its own copy is
    messages.context.operations.begin();
    messages.sends_by_flags.push_back(*message);
    messages.hold_memory(request);
    if (!cut_through(*message)) start(*message, 0);
    message->started = 1;
    const wire::Envelope envelope =
        messages.next_envelope(group, departure.to, tag, departure.bytes(), &request);
    Status left = send_its_rts(messages, *message, departure, offer, envelope, busy);
    message->rts_left = left.ok();
    if (!left.ok()) {
        // The end of the first copy ends the message.
        to.sequence.roll_back();
        message->failure = std::move(left);
    }
    start_more(*message);
    return true;
}

const Request* send_by_flags_of(Messages& messages, std::uint64_t id) {
    IntrusiveList<SendByFlags>& sends = messages.sends_by_flags;
    for (SendByFlags* each = sends.next(nullptr); each != nullptr; each = sends.next(each))
        if (each->pieces.send_id == id) return &each->request;
    return nullptr;
}

bool fail_send_by_flags(Messages& messages, std::uint64_t id, const Status& why) {
    IntrusiveList<SendByFlags>& sends = messages.sends_by_flags;
    for (SendByFlags* each = sends.next(nullptr); each != nullptr; each = sends.next(each)) {
        if (each->pieces.send_id != id) continue;
        if (each->failure.ok()) each->failure = why;
        return true;
    }
    return false;
}

}  // namespace gantry::p2p
