// SPDX-License-Identifier: BSD-3-Clause
//
// The receiver's side of a message told by flags: how each is waited for, and the short way of one
// like the last, which needs no answer, no record but its request, and no coroutine. All others go
// through receive.cpp, where a flag is a chunk.
#include "p2p/protocols/flagged.hpp"
#include "p2p/protocols/receiving.hpp"
#include "plan/windows.hpp"

#include "base/log.hpp"

#include <cstring>
#include <new>
#include <utility>

namespace gantry::p2p {

FlaggedReceive::Piece::Piece(FlaggedReceive& of, const wire::Chunk& in)
    : Completion(of.core.executor), message(of), chunk(in) {}

FlaggedReceive::FlaggedReceive(Core& in, int rank, std::uint64_t id, Request& of,
                               const Peer::Taken& like)
    : core(in),
      from(rank),
      send_id(id),
      request(of),
      engine(like.engine),
      notice(like.notice),
      usual_piece(like.offer.chunk) {}

namespace {

Status give_back(FlaggedReceive& message, const wire::Chunk& chunk) {
    Core& core = message.core;
    if (!core.peer(message.from).lost.ok()) return success();
    return core.send(message.from, wire::kCredit, wire::credit_for(chunk));
}

void end(FlaggedReceive& message) {
    Core& core = message.core;
    Request& request = message.request;
    if (message.emptied) {
        Status returned = give_back(message, *message.emptied);
        if (message.failure.ok()) message.failure = std::move(returned);
    }
    Status outcome = std::move(message.failure);
    if (!outcome.ok() && !message.told && core.peer(message.from).lost.ok()) {
        const Status told =
            tell_failure(core, message.from, message.send_id, outcome, wire::For::sender);
        if (!told.ok())
            log::error("rank {} was not told of a failed receive: {}", message.from, told.text());
    }
    message.~FlaggedReceive();
    core.executor.free_frame(&message);
    core.finish_request(request, std::move(outcome));
    core.operations.end();
}

// No more of it is wanted.
void fail(FlaggedReceive& message, Status why) {
    if (!message.failure.ok()) return;
    message.failure = std::move(why);
    message.core.flagged.awaited.disown(message);
    message.awaited = 0;
}

void piece_ended(Resumable& waiting) {
    auto& piece = static_cast<FlaggedReceive::Piece&>(Completion::of(waiting));
    FlaggedReceive& message = piece.message;
    Status status = piece.status();
    if (!message.flows) {
        Status returned = give_back(message, piece.chunk);
        if (status.ok()) status = std::move(returned);
    }
    piece.~Piece();
    message.core.executor.free_frame(&piece);
    if (!status.ok()) fail(message, std::move(status));
    --message.running;
    if (message.running + message.awaited == 0) end(message);
}

// Memory that can be mapped by its handle alone, or not at all.
bool is_simple(device::IpcKind kind) {
    return kind == device::IpcKind::none || kind == device::IpcKind::legacy;
}

// Neither end's memory is mapped, and opening it pays no more than it did for the last.
bool stays_staged(Core& core, int from, const Peer::Taken& last, const wire::Handle& source,
                  const device::Location& sink) {
    if (!core.tuning.ipc) return true;
    const Mappings& mappings = core.peer(from).mappings;
    if (source.kind != 0 &&
        (mappings.gets_staged(source.buffer_id) > last.gets_staged ||
         core.device.access(wire::decode(source), sink.gpu) != device::Access::closed))
        return false;
    return sink.ipc == device::IpcKind::none ||
           (!mappings.is_put_open(sink.buffer_id) && !mappings.is_put_refused(sink.buffer_id) &&
            mappings.puts_staged(sink.buffer_id) <= last.puts_staged);
}

bool like_the_last(Core& core, int from, const wire::RequestToSend& whole,
                   const wire::RequestAgain& own, const Request& receive) {
    const Peer::Taken& last = core.peer(from).last_taken;
    return own.slot_flag.number != 0 && last.bytes != 0 && last.bytes == own.envelope.bytes &&
           whole.handle.kind == last.source_ipc && receive.location.on_device() &&
           receive.location.gpu == last.gpu && receive.location.ipc == last.ipc &&
           receive.buffer.contiguous() && receive.buffer.bytes() >= last.bytes &&
           std::memcmp(&whole.offer, &last.offer, sizeof last.offer) == 0 &&
           std::memcmp(whole.handle.gpu, last.source_gpu, sizeof last.source_gpu) == 0 &&
           !core.explain.on() &&
           (!last.takes_turns || last_user(core, whole, last.gpu) == last.last_user) &&
           stays_staged(core, from, last, whole.handle, receive.location);
}

// The flags of that rank, if it has those which it names; else none.
std::span<Flag> flags_of(Core& core, int from, const FlaggedPieces& pieces) {
    const bool possible = pieces.chunk > 0 && pieces.bytes > 0 &&
                          divide_up(pieces.bytes, pieces.chunk) <= kMostFlagged &&
                          pieces.flag + divide_up(pieces.bytes, kDeviceSlotUnit) <= kSlotFlags;
    return possible ? core.peer(from).transport->flags(from) : std::span<Flag>();
}

void await(Core& core, int from, std::span<Flag> flags, const FlaggedPieces& pieces,
           const wire::SlotFlag& slot_flag, FlaggedReceive* receive, Bytes least = 0) {
    for (int index = 0; index < pieces.count(); ++index) {
        const wire::Chunk chunk = pieces.piece(index);
        core.flagged.awaited.await({from, &flags[pieces.flag_of(chunk.unit)], slot_flag.number,
                                    chunk, receive, slot_flag.flows != 0, least});
    }
}

FlaggedPieces pieces_of(const wire::RequestToSend& whole, const wire::RequestAgain& own) {
    const Bytes bytes = own.envelope.bytes;
    return {own.send_id, bytes, own.slot_flag.flows != 0 ? bytes : whole.offer.chunk,
            own.slot_flag.unit, own.slot_flag.flag};
}

// Where no kernel stays, a copy engine takes what it would have been sent at once.
Bytes least_told(const FlaggedReceive& message) {
    if (!message.flows) return 0;
    return message.core.device.would_flow(message.engine) ? kFlowPiece : message.usual_piece;
}

}  // namespace

Status await_flags(Core& core, int from, const wire::RequestToSend& rts) {
    const wire::RequestAgain own = rts.own();
    const FlaggedPieces pieces = pieces_of(rts, own);
    const std::span<Flag> flags = flags_of(core, from, pieces);
    if (!flags.empty()) {
        await(core, from, flags, pieces, own.slot_flag, nullptr);
        return success();
    }
    Status impossible = failure(
        MPI_ERR_INTERN, "rank {} names flags that cannot be: the first {}, pieces of {} bytes",
        from, pieces.flag, pieces.chunk);
    log::error("{}", impossible.text());
    const Status told = tell_failure(core, from, rts.send_id, impossible, wire::For::sender);
    if (!told.ok()) log::error("rank {} was not told of a refused message: {}", from, told.text());
    return impossible;
}

bool take_flagged(Core& core, int from, const wire::RequestToSend& whole,
                  const wire::RequestAgain& own, Request& receive, bool late) {
    if (!like_the_last(core, from, whole, own, receive)) return false;
    const FlaggedPieces pieces = pieces_of(whole, own);
    const std::span<Flag> flags = flags_of(core, from, pieces);
    if (flags.empty()) return false;
    Peer& sender = core.peer(from);
    const Peer::Taken& last = sender.last_taken;
    void* memory = core.executor.allocate_frame(sizeof(FlaggedReceive));
    if (memory == nullptr) return false;
    auto* message = new (memory) FlaggedReceive(core, from, own.send_id, receive, last);
    receive.outcome = {own.envelope.source, own.envelope.tag, last.bytes, false};
    if (core.tuning.ipc) sender.mappings.staged(whole.handle, receive.location, {});
    if (late) core.flagged.awaited.drop(from, own.send_id);
    core.operations.begin();
    core.flagged.receives.push_back(*message);
    message->awaited = pieces.count();
    message->flows = own.slot_flag.flows != 0;
    await(core, from, flags, pieces, own.slot_flag, message, least_told(*message));
    return true;
}

namespace {

// `chunk`: a piece, or what has come of one that flows.
void take_piece(FlaggedReceive& message, const wire::Chunk& chunk) {
    Core& core = message.core;
    void* const memory = core.executor.allocate_frame(sizeof(FlaggedReceive::Piece));
    if (memory == nullptr) {
        if (!message.flows) (void)give_back(message, chunk);
        return fail(message, failure(MPI_ERR_NO_MEM, "no memory to receive {} bytes from rank {}",
                                     chunk.bytes, message.from));
    }
    auto& piece = *new (memory) FlaggedReceive::Piece(message, chunk);
    ++message.running;
    piece.then(piece_ended);
    Result<std::byte*> slot =
        core.peer_slot(message.from, transport::Pool::device_slots, chunk.slot_offset, true);
    if (!slot.ok()) return piece.complete(std::move(slot).status());
    device::Copy copy;
    copy.destination = message.request.buffer.data() + chunk.offset;
    copy.source = *slot;
    copy.bytes = chunk.bytes;
    copy.gpu = message.request.location.gpu;
    copy.engine = message.engine;
    copy.notice = message.notice;
    if (may_flow(message.request.buffer.data(), message.request.outcome.bytes))
        copy.pieces = {.size = kFlowPiece,
                       .flow = message.flows,
                       .message = chunk.offset == 0 ? message.request.outcome.bytes : 0};
    // Where the other end has no kernel yet, ours stays all the same.
    if (copy.pieces.size > 0 && core.device.flow(copy, piece)) return;
    if (message.flows) core.flagged.awaited.tell_more(message, message.usual_piece);
    core.device.copy(copy, piece);
}

void take(const AwaitedFlags::Raised& raised) {
    FlaggedReceive& message = *raised.receive;
    if (raised.all) {
        --message.awaited;
        if (message.flows) message.emptied = raised.chunk;
    }
    wire::Chunk part = raised.chunk;
    part.offset += raised.offset;
    part.slot_offset += raised.offset;
    part.bytes = raised.bytes;
    if (part.bytes > 0) take_piece(message, part);
    if (message.running + message.awaited == 0) end(message);
}

}  // namespace

int Core::take_raised_flags() {
    int taken = 0;
    for (; const auto raised = flagged.awaited.next_raised(); ++taken) {
        if (raised->receive != nullptr)
            take(*raised);
        else
            on_chunk(raised->from, raised->chunk);
    }
    return taken;
}

void fail_flagged_receives(Core& core, int from, std::optional<std::uint64_t> id,
                           const Status& why) {
    IntrusiveList<FlaggedReceive>& receives = core.flagged.receives;
    FlaggedReceive* next = nullptr;
    for (FlaggedReceive* each = receives.next(nullptr); each != nullptr; each = next) {
        next = receives.next(each);
        if (each->from != from || (id && each->send_id != *id)) continue;
        each->told = true;
        if (each->awaited == 0) continue;  // all of it lies there
        fail(*each, why);
        if (each->running == 0) end(*each);
    }
}

void remember_taken(const Receiving& receiving) {
    Core& core = receiving.core;
    const wire::RequestToSend& rts = receiving.message.rts;
    const plan::Facts& facts = receiving.facts;
    const plan::CopyEngine engine = plan_of(receiving).sink_engine;
    const device::Location& sink = receiving.side.location;
    if (rts.flag_number == 0 || !plan::is_copy_engine(engine) || receiving.direct_next != 0 ||
        receiving.wants_descriptor || receiving.accepted != rts.envelope.bytes ||
        !receiving.side.on_device() || !receiving.side.contiguous())
        return;
    // Each message brings a window (GDRCopy) nearer; while a device works, opening costs more.
    if (core.device.has_windows() && receiving.accepted <= plan::kLargestWindowWrite) return;
    const auto source_ipc = static_cast<device::IpcKind>(rts.handle.kind);
    const plan::Question& asked = receiving.question;
    const bool settled =
        !core.tuning.ipc || (is_simple(source_ipc) && asked.source.ipc == source_ipc &&
                             is_simple(sink.ipc) && asked.sink.ipc == sink.ipc && !facts.ipc_open &&
                             !facts.put_open && !facts.receiver_busy && !facts.sender_busy);
    if (!settled) return;
    // What flowed was one piece whatever its request offered, and the next may repeat.
    wire::Plan offer = rts.offer;
    const wire::Plan& repeated = core.peer(receiving.message.peer).request_received.offer;
    if (rts.flag_flows != 0) offer.chunk = repeated.chunk;
    if (rts.flag_flows != 0 && std::memcmp(&offer, &repeated, sizeof offer) != 0) return;
    Peer::Taken& last = core.peer(receiving.message.peer).last_taken;
    last = {.offer = offer,
            .source_ipc = rts.handle.kind,
            .bytes = receiving.accepted,
            .gpu = sink.gpu,
            .ipc = sink.ipc,
            .gets_staged = facts.uses,
            .puts_staged = facts.put_uses,
            .takes_turns = facts.takes_turns(),
            .last_user = facts.last_user,
            .engine = engine == plan::CopyEngine::copy_engine ? device::Engine::h2d
                                                              : device::Engine::h2d_2d,
            .notice = notice_of(plan_of(receiving))};
    std::memcpy(last.source_gpu, rts.handle.gpu, sizeof last.source_gpu);
}

}  // namespace gantry::p2p
