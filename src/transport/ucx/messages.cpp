// SPDX-License-Identifier: BSD-3-Clause
//
// Active messages of the UCX transport: packing into frames, posting them, taking them apart.
#include "base/log.hpp"
#include "transport/ucx/peer.hpp"

namespace gantry::transport::ucx {
namespace {

// Messages to one peer that leave alone between two calls of progress(): a program that sends a few
// and goes computing must not find them here when it comes back.
constexpr int kSentAtOnce = 4;
// Frames of one peer that UCX holds; what comes meanwhile is packed together.
constexpr int kInFlight = 2;
// With several rails: bytes of frames that the peer has not acknowledged. About what a socket takes, so
// that UCX itself holds little when a rail has to be given up.
constexpr Bytes kMostKept = 128 * kKiB;
// Bytes of a frame that count as another one for acknowledgements.
constexpr Bytes kCountsAsFrame = 4 * kKiB;
// Messages to one peer that show that a connection of their own repays itself.
constexpr int kWorthALane = 32;

}  // namespace

ucp_request_param_t UcxTransport::how_frames_leave() {
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                       UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    how.cb.send = &UcxTransport::on_sent;
    how.flags = UCP_AM_SEND_FLAG_EAGER;
    how.memory_type = UCS_MEMORY_TYPE_HOST;
    return how;
}

Status UcxTransport::reach(Peer& peer) {
    if (!peer.lost.ok()) [[unlikely]]
        return peer.lost;
    if (peer.left) [[unlikely]]
        return failure(MPI_ERR_PROC_ABORTED, "sending to rank {}, which has called MPI_Finalize",
                       peer.rank);
    if (!peer.connected) [[unlikely]]
        GANTRY_TRY(connect(peer));
    return success();
}

Status UcxTransport::send(int rank, MessageKind kind, ConstSpan header, ConstSpan payload) {
    Peer& peer = peer_of(rank);
    GANTRY_ASSERT(header.size() <= kMaxHeader && kind < kRailBack);
    GANTRY_TRY(reach(peer));
    return send_record(peer, kind, header, payload);
}

// Left in the open frame, which nobody visits for its sake.
Status UcxTransport::send_with_next(int rank, MessageKind kind, ConstSpan header,
                                    ConstSpan payload) {
    Peer& peer = peer_of(rank);
    GANTRY_ASSERT(header.size() <= kMaxHeader && kind < kRailBack);
    GANTRY_TRY(reach(peer));
    return append(peer, kind, header, payload);
}

Status UcxTransport::send_record(Peer& peer, MessageKind kind, ConstSpan header,
                                 ConstSpan payload) {
    GANTRY_TRY(append(peer, kind, header, payload));
    if (peer.sent_alone < kWorthALane && ++peer.sent_alone == kWorthALane) [[unlikely]]
        ask_for_lane(peer);
    if (peer.in_flight == 0 && peer.sent_at_once < kSentAtOnce) {
        ++peer.sent_at_once;
        post(peer);
    }
    visit_in_progress(peer);
    return success();
}

void UcxTransport::visit_in_progress(Peer& peer) {
    if (std::exchange(peer.waits, true)) return;
    waiting_.push_back(&peer);
}

Status UcxTransport::append(Peer& peer, MessageKind kind, ConstSpan header, ConstSpan payload) {
    const Bytes record = Frame::record_bytes(header.size(), payload.size());
    if (peer.open != nullptr && !peer.open->fits(record)) {
        peer.open->queued = true;
        peer.full.push_back(std::exchange(peer.open, nullptr));
        post(peer);
    }
    if (peer.open == nullptr) {
        peer.open = frames_.take(record);
        if (peer.open == nullptr)
            return failure(MPI_ERR_NO_MEM, "out of memory for a message of {} bytes to rank {}",
                           payload.size(), peer.rank);
        peer.open->begin(rank_);
    }
    peer.open->append(kind, header, payload);
    return success();
}

// Hands frames to UCX, oldest first, while it may hold more. Answers to a peer that spoke first
// wait until progress() has connected it.
void UcxTransport::post(Peer& peer) {
    while (peer.in_flight < kInFlight && !peer.broken && peer.connected) {
        RailTo* rail = several() ? message_rail(peer) : &peer.rails.front();
        if (rail == nullptr) return;
        Frame* frame = nullptr;
        const bool goes_again = !peer.full.empty() && peer.full.front()->number != 0;
        if (several() && !goes_again && peer.kept_bytes >= kMostKept) return;
        if (!peer.full.empty()) {
            frame = peer.full.front();
            peer.full.pop_front();
        } else if (peer.open != nullptr) {
            frame = std::exchange(peer.open, nullptr);
        } else {
            return;
        }
        frame->queued = false;
        if (several()) {
            if (frame->number != 0 && !frame->kept) {  // it goes again, and had arrived
                frames_.give(frame);
                continue;
            }
            keep(peer, frame, *rail);
        }
        frame->owner = &peer;
        ++frames_posted_;
        if (peer.lane != nullptr && peer.lane->stream.idle()) {
            post_by_lane(*peer.lane, frame);
            continue;
        }
        give_to_ucx(*rail, frame);
    }
}

void UcxTransport::give_to_ucx(RailTo& rail, Frame* frame) {
    frame->rail = rail.index;
    how_frames_leave_.user_data = frame;
    void* request = (*library_)->ucp_am_send_nbx(rail.endpoint, kFrameId, nullptr, 0,
                                                 frame->bytes(), frame->used, &how_frames_leave_);
    if (UCS_PTR_IS_PTR(request)) {
        frame->with_ucx = true;
        ++rail.frames;
        ++rail.peer->in_flight;
        ++in_flight_;
        return;
    }
    give_if_over(frame);
    if (request != nullptr) note_broken(rail, UCS_PTR_STATUS(request));
}

void UcxTransport::on_sent(void* request, ucs_status_t status, void* arg) {
    auto* frame = static_cast<Frame*>(arg);
    Peer& peer = *static_cast<Peer*>(frame->owner);
    UcxTransport& self = peer.owner;
    (*self.library_)->ucp_request_free(request);
    RailTo& rail = peer.rails[static_cast<std::size_t>(frame->rail)];
    frame->with_ucx = false;
    --rail.frames;
    if (std::exchange(frame->again, false) && frame->kept) {
        frame->queued = true;
        peer.full.push_front(frame);
        ++self.rail_counts_.frames_again;
    }
    self.give_if_over(frame);
    --peer.in_flight;
    --self.in_flight_;
    if (status != UCS_OK && status != UCS_ERR_CANCELED) self.note_broken(rail, status);
    if (!peer.nothing_queued()) self.visit_in_progress(peer);
}

// None of them leaves any more. Those that UCX has come back by on_sent.
void UcxTransport::drop_frames(Peer& peer) {
    peer.kept_bytes = 0;
    for (Frame* frame : std::exchange(peer.kept, {})) {
        frame->kept = false;
        give_if_over(frame);
    }
    for (Frame* frame : std::exchange(peer.full, {})) {
        frame->queued = false;
        give_if_over(frame);
    }
    if (Frame* frame = std::exchange(peer.open, nullptr)) frames_.give(frame);
}

void UcxTransport::post_open_frames() {
    std::swap(waiting_, visiting_);
    for (Peer* peer : visiting_) {
        peer->waits = false;
        peer->sent_at_once = 0;
        if (!peer->connected && !peer->broken && !peer->left && stage_ == Stage::running) {
            // It spoke first. Connected, its death is told to us.
            if (Status failed = connect(*peer)) log::warn("{}", failed.text());
        }
        if (peer->connected) post(*peer);
    }
    visiting_.clear();
}

void UcxTransport::flush() {
    for (Peer* peer : waiting_)
        if (peer->connected) post(*peer);
}

ucs_status_t UcxTransport::on_frame(void* listening, const void*, std::size_t, void* data,
                                    std::size_t length, const ucp_am_recv_param_t* param) {
    UcxTransport& self = *static_cast<Listening*>(listening)->owner;
    if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0)
        log::error("ucx: a frame of {} bytes came by rendezvous: mixed versions of Gantry?",
                   length);
    else
        self.deliver({static_cast<const std::byte*>(data), length});
    return UCS_OK;
}

void UcxTransport::deliver(ConstSpan frame) {
    if (receiver_ == nullptr) return;
    int from = -1;
    FrameHead head{};
    if (frame.size() >= sizeof head) std::memcpy(&head, frame.data(), sizeof head);
    if (head.from >= peers_.size()) {
        log::error("ucx: a frame of {} bytes came from nobody of this job", frame.size());
        return;
    }
    Peer& peer = peer_of(static_cast<int>(head.from));
    if (!peer.lost.ok()) return;
    if (several()) {
        acknowledged(peer, head.received);
        if (head.number != 0) {
            peer.unacknowledged += 1 + static_cast<int>(frame.size() / kCountsAsFrame);
            owe_acknowledgement(peer);
            if (!peer.received.take(head.number)) return;
        }
    }
    const bool whole =
        each_record(frame, from, [&](MessageKind kind, ConstSpan header, ConstSpan payload) {
            ++events_;
            if (kind == kGoodbye)
                peer.left = true;
            else if (kind == kPutAnswer)
                on_put_answer(peer, header);
            else if (kind >= kRailBack && kind <= kRailDown)
                on_rail_message(peer, kind, header);
            else if (kind >= kFetch && kind <= kBulkOpen)
                on_bulk_message(peer, kind, header);
            else
                receiver_->on_message(from, kind, header, payload);
        });
    if (!whole)
        log::error("ucx: a frame of {} bytes from rank {} is damaged", frame.size(), head.from);
    if (!peer.connected) visit_in_progress(peer);
}

}  // namespace gantry::transport::ucx
