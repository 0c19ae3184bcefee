// SPDX-License-Identifier: BSD-3-Clause
//
// The receiver's side of a message whose arrival is notified by flags: how each flag is waited for, and
// the way of a message that needs no answer, no record but its request, and no coroutine. All others go
// through rendezvous_receive.cpp, where a flag is a chunk.
#include "p2p/protocols/flagged_message.hpp"
#include "transfer/mover.hpp"

#include "base/log.hpp"

#include <cstring>
#include <new>
#include <utility>

namespace gantry::p2p {

ReceiveByFlags::Piece::Piece(ReceiveByFlags& of, const wire::Chunk& in)
    : Completion(of.messages.executor), message(of), chunk(in) {}

ReceiveByFlags::ReceiveByFlags(Messages& in, const Asked& asked, const plan::Plan& plan,
                               Request& of)
    : messages(in),
      from(asked.from.rank),
      send_id(asked.own.send_id),
      request(of),
      staging{{of.buffer, of.location}, plan.sink_engine, transfer::notice_of(plan)},
      usual_piece(asked.whole.offer.chunk) {}

namespace {

Status give_back(ReceiveByFlags& message, const wire::Chunk& chunk) {
    Messages& messages = message.messages;
    if (!messages.lost(message.from).ok()) return success();
    return messages.send(message.from, wire::kCredit, wire::credit_for(chunk));
}

void end(ReceiveByFlags& message) {
    Messages& messages = message.messages;
    Request& request = message.request;
    if (message.emptied) {
        Status returned = give_back(message, *message.emptied);
        if (message.failure.ok()) message.failure = std::move(returned);
    }
    Status outcome = std::move(message.failure);
    if (!outcome.ok() && !message.told)
        tell_failure(messages, message.from, message.send_id, outcome, wire::For::sender);
    if (outcome.ok()) {
        messages.count_received(plan::Protocol::pipeline, request);
        messages.counted.staged += request.outcome.bytes;
    }
    message.~ReceiveByFlags();
    messages.executor.free_frame(&message);
    messages.finish_request(request, std::move(outcome));
    messages.context.operations.end();
}

// No more of it is wanted.
void fail(ReceiveByFlags& message, Status why) {
    if (!message.failure.ok()) return;
    message.failure = std::move(why);
    message.messages.context.flags.awaited.disown(message);
    message.awaited = 0;
}

void piece_ended(Resumable& waiting) {
    auto& piece = static_cast<ReceiveByFlags::Piece&>(Completion::of(waiting));
    ReceiveByFlags& message = piece.message;
    Status status = piece.status();
    message.messages.context.moved("out of a slot", piece.begin, message.request.location.gpu,
                                   piece.chunk.bytes);
    if (!message.cuts_through) {
        Status returned = give_back(message, piece.chunk);
        if (status.ok()) status = std::move(returned);
    }
    piece.~Piece();
    message.messages.executor.free_frame(&piece);
    if (!status.ok()) fail(message, std::move(status));
    --message.running;
    if (message.running + message.awaited == 0) end(message);
}

// The flags of that rank, if it has those which it names; else none.
std::span<Flag> flags_of(const transfer::Endpoint& from, const FlagPieces& pieces) {
    const bool possible =
        pieces.chunk > 0 && pieces.bytes > 0 &&
        divide_up(pieces.bytes, pieces.chunk) <= transfer::kMostPiecesByFlags &&
        pieces.flag + divide_up(pieces.bytes, transfer::kDeviceSlotUnit) <= transfer::kSlotFlags;
    return possible && from.shared != nullptr ? from.shared->flags() : std::span<Flag>();
}

void await(transfer::Context& context, int from, std::span<Flag> flags, const FlagPieces& pieces,
           const wire::SlotFlag& slot_flag, ReceiveByFlags* receive, Bytes least = 0) {
    for (int index = 0; index < pieces.count(); ++index) {
        const wire::Chunk chunk = pieces.piece(index);
        context.flags.awaited.await({from, &flags[pieces.flag_of(chunk.unit)], slot_flag.number,
                                     chunk, receive, slot_flag.cuts_through != 0, least});
    }
}

FlagPieces pieces_of(const wire::Rts& whole, const wire::RtsFromTemplate& own) {
    const Bytes bytes = own.envelope.bytes;
    return {own.send_id, bytes, own.slot_flag.cuts_through != 0 ? bytes : whole.offer.chunk,
            own.slot_flag.unit, own.slot_flag.flag};
}

// Where no kernel stays, a copy engine takes what it would have been sent at once.
Bytes least_told(const ReceiveByFlags& message) {
    if (!message.cuts_through) return 0;
    return message.messages.device.would_cut_through(device::Engine::h2d)
               ? transfer::kCutThroughPiece
               : message.usual_piece;
}

}  // namespace

Status await_flags(Messages& messages, int from, const wire::Rts& rts) {
    const wire::RtsFromTemplate own = rts.own();
    const FlagPieces pieces = pieces_of(rts, own);
    const std::span<Flag> flags = flags_of(messages.endpoint(from), pieces);
    if (!flags.empty()) {
        await(messages.context, from, flags, pieces, own.slot_flag, nullptr);
        return success();
    }
    Status impossible = failure(
        MPI_ERR_INTERN, "rank {} names flags that cannot be: the first {}, pieces of {} bytes",
        from, pieces.flag, pieces.chunk);
    log::error("{}", impossible.text());
    tell_failure(messages, from, rts.send_id, impossible, wire::For::sender);
    return impossible;
}

// The sender needs no word of the verdict, and what is in its slots goes to a device in one copy a piece.
bool needs_no_answer(const Messages& messages, const Asked& asked,
                     const plan::Selection& selection) {
    const plan::Plan& plan = selection.plan();
    return plan.protocol == plan::Protocol::pipeline && plan::is_copy_engine(plan.sink_engine) &&
           !selection.advice().direct_next && !selection.advice().wants_descriptor &&
           asked.from.facts.shared_memory && messages.context.tuning.mechanisms.notify_flags;
}

bool receive_by_flags(Messages& messages, const Asked& asked, const plan::Selection& selection,
                      Request& receive, bool late) {
    const int from = asked.from.rank;
    const FlagPieces pieces = pieces_of(asked.whole, asked.own);
    const std::span<Flag> flags = flags_of(asked.from, pieces);
    if (flags.empty()) return false;
    void* memory = messages.executor.allocate_frame(sizeof(ReceiveByFlags));
    if (memory == nullptr) return false;
    auto* message = new (memory) ReceiveByFlags(messages, asked, selection.plan(), receive);
    receive.outcome = {asked.own.envelope.source, asked.own.envelope.tag, asked.accepted, false};
    if (late) messages.context.flags.awaited.drop(from, asked.own.send_id);
    messages.context.operations.begin();
    messages.receives_by_flags.push_back(*message);
    message->awaited = pieces.count();
    message->cuts_through = asked.own.slot_flag.cuts_through != 0;
    await(messages.context, from, flags, pieces, asked.own.slot_flag, message,
          least_told(*message));
    return true;
}

namespace {

// `chunk`: a piece, or what has come of a message that cuts through.
void take_piece(ReceiveByFlags& message, const wire::Chunk& chunk) {
    Messages& messages = message.messages;
    void* const memory = messages.executor.allocate_frame(sizeof(ReceiveByFlags::Piece));
    if (memory == nullptr) {
        if (!message.cuts_through) (void)give_back(message, chunk);
        return fail(message, failure(MPI_ERR_NO_MEM, "no memory to receive {} bytes from rank {}",
                                     chunk.bytes, message.from));
    }
    auto& piece = *new (memory) ReceiveByFlags::Piece(message, chunk);
    piece.begin = messages.context.begins();
    ++message.running;
    piece.then(piece_ended);
    Result<std::byte*> slot = messages.context.pools.slot_of(
        messages.endpoint(message.from), transport::Pool::device_slots, chunk.slot_offset, true);
    if (!slot.ok()) return piece.complete(std::move(slot).status());
    device::Copy copy = transfer::slot_to_device(message.staging, chunk.offset, chunk.bytes, *slot);
    if (may_cut_through(messages, message.request.buffer.data(), message.request.outcome.bytes))
        copy.pieces = {.size = transfer::kCutThroughPiece,
                       .cut_through = message.cuts_through,
                       .message = chunk.offset == 0 ? message.request.outcome.bytes : 0};
    // Where the other end has no kernel yet, ours stays all the same.
    if (copy.pieces.size > 0 && messages.device.cut_through(copy, &piece)) return;
    if (message.cuts_through)
        messages.context.flags.awaited.tell_more(message, message.usual_piece);
    messages.device.copy(copy, piece);
}

}  // namespace

void take_raised(const transfer::AwaitedFlags::Raised& raised) {
    auto& message = *static_cast<ReceiveByFlags*>(raised.waiter);
    if (raised.all) {
        --message.awaited;
        if (message.cuts_through) message.emptied = raised.chunk;
    }
    wire::Chunk part = raised.chunk;
    part.offset += raised.offset;
    part.slot_offset += raised.offset;
    part.bytes = raised.bytes;
    if (part.bytes > 0) take_piece(message, part);
    if (message.running + message.awaited == 0) end(message);
}

void fail_receives_by_flags(Messages& messages, int from, std::optional<std::uint64_t> id,
                            const Status& why) {
    IntrusiveList<ReceiveByFlags>& receives = messages.receives_by_flags;
    ReceiveByFlags* next = nullptr;
    for (ReceiveByFlags* each = receives.next(nullptr); each != nullptr; each = next) {
        next = receives.next(each);
        if (each->from != from || (id && each->send_id != *id)) continue;
        each->told = true;
        if (each->awaited == 0) continue;  // all of it lies there
        fail(*each, why);
        if (each->running == 0) end(*each);
    }
}

}  // namespace gantry::p2p
