// SPDX-License-Identifier: BSD-3-Clause
//
// Lanes: frames of small messages by the bulk connection (bulk.hpp) instead of UCX's. UCX asks the
// kernel in each turn which connection has something, and then for the bytes; here the stream that
// brought the last frame is simply read, which is one system call less between a message's arrival
// and its delivery. All others are watched together.
//
//   lower rank, which opened it                  higher rank
//     | == | head, Carried::frame | frame | ===>   |  deliver(), as from UCX
//     | <== | head, Carried::frame | frame | ===   |
//
// A lane takes a frame while nothing else is on its stream; behind a large transfer frames go by
// UCX, so messages may overtake each other (docs/wire.md section 2 says who puts them in order).
#include "transport/ucx/peer.hpp"

#include <sys/epoll.h>

#include <array>

namespace gantry::transport::ucx {
namespace {

// While frames come by the hot lane UCX, which asks the kernel for all its connections, is looked
// at in one turn of so many; and in each when none has come in so many looks.
constexpr unsigned kTurnsOfUcx = 8;
constexpr unsigned kHotFor = 4096;

}  // namespace

void UcxTransport::ask_for_lane(Peer& peer) {
    if (!several() && lanes_ < config_.tcp_lanes &&
        is_lane_of_both(rank_, peer.rank, kExposureRail) && goes_by_messages(kExposureRail))
        bulk_to(peer, kExposureRail);
}

void UcxTransport::use_lane(Peer& peer, Bulk& lane) {
    if (lanes_ >= config_.tcp_lanes || !lane.stream.open()) return;
    ++lanes_;
    peer.lane = &lane;
}

// The connection that a lower rank opened, as ours to it: from its first frame on, which says that
// it reads, too.
void UcxTransport::open_way_back(Peer& peer, Accepted& accepted) {
    accepted.stream.socket().set_up_for_sending(config_.peer_timeout);
    peer.back = std::make_unique<Bulk>(
        Bulk{&peer, kExposureRail, Bulk::State::open, OutStream(accepted.stream.socket().again())});
}

// What a higher rank sends by the connection that we opened. False: there is no way to read it, so
// it must not be made to send.
bool UcxTransport::read_way_back(Peer& peer, const Bulk& bulk) {
    auto accepted = std::make_unique<Accepted>(*this, bulk.stream.socket().again(), 0);
    accepted->from = peer.rank;
    accepted->hello.rail = Accepted::kNoRail;
    if (!accepted->stream.open()) return false;
    watch(*accepted);
    accepted_.push_back(std::move(accepted));
    return true;
}

void UcxTransport::post_by_lane(Bulk& lane, Frame* frame) {
    Peer& peer = *lane.peer;
    ++lane_frames_;
    const StreamHead head{kFrameMagic, static_cast<std::uint32_t>(Carried::frame), 0, 0, 0,
                          frame->used};
    Result<Bytes> sent = lane.stream.send_now(head, {frame->bytes(), frame->used});
    if (sent.ok() && *sent < sizeof head + frame->used) {
        ++peer.in_flight;
        ++in_flight_;
        lane.stream.push_rest(head, frame->bytes(), *sent, [this, &peer, frame](const Status&) {
            frames_.give(frame);
            --peer.in_flight;
            --in_flight_;
            if (!peer.nothing_queued()) visit_in_progress(peer);
        });
        sending_.push_back(&lane);
        return;
    }
    frames_.give(frame);
    if (!sent.ok()) lane_broke(peer);
}

// What it carried is gone, and the peer with it unless it has left.
void UcxTransport::lane_broke(Peer& peer) {
    peer.lane->state = Bulk::State::refused;
    peer.lane = nullptr;
    --lanes_;
    doubt(peer);
}

// Its stream ended. It may have left: then UCX brings its goodbye, behind all that it sent before.
void UcxTransport::doubt(Peer& peer) {
    if (!peer.left && !peer.broken)
        doubted_.push_back({&peer, clock_.now() + config_.peer_timeout});
}

void UcxTransport::settle_doubts() {
    std::erase_if(doubted_, [this, now = clock_.now()](const Doubted& doubted) {
        Peer& peer = *doubted.peer;
        if (peer.left || peer.broken) return true;
        if (now < doubted.until) return false;
        note_broken(peer, UCS_ERR_CONNECTION_RESET);
        return true;
    });
}

void UcxTransport::Accepted::frame(ConstSpan bytes) {
    if (std::exchange(untrue, false)) return;  // the bytes that it tells of were dropped
    owner.hot_ = this;
    owner.hot_looks_ = 0;
    Peer& peer = owner.peer_of(from);
    if (peer.back != nullptr && std::exchange(back_unused, false)) owner.use_lane(peer, *peer.back);
    owner.deliver(bytes);
}

// Said explicitly: the way back is the same connection, and as long as that is open epoll would
// tell of this one.
void UcxTransport::watch_no_more(Accepted& accepted) {
    if (std::exchange(accepted.watched, false))
        epoll_ctl(others_.descriptor(), EPOLL_CTL_DEL, accepted.stream.socket().descriptor(),
                  nullptr);
}

// With nothing else under way.
bool UcxTransport::only_the_lane_matters() {
    if (++hot_looks_ > kHotFor || ++turns_ % kTurnsOfUcx == 0) return false;
    return in_flight_ == 0 && sending_.empty() && awaited_.empty() && expected_ == 0 &&
           unknown_ == 0 && !others() && stage_ == Stage::running && broken_.empty() &&
           doubted_.empty();
}

// What epoll does not take is read in each turn.
void UcxTransport::watch(Accepted& accepted) {
    if (hot_ == nullptr) hot_ = &accepted;
    if (!others_.open()) others_ = Socket(epoll_create1(EPOLL_CLOEXEC));
    epoll_event readable{};
    readable.events = EPOLLIN;
    readable.data.ptr = &accepted;
    accepted.watched = epoll_ctl(others_.descriptor(), EPOLL_CTL_ADD,
                                 accepted.stream.socket().descriptor(), &readable) == 0;
}

void UcxTransport::look_at_others() {
    std::array<epoll_event, 16> readable{};
    const int count =
        epoll_wait(others_.descriptor(), readable.data(), static_cast<int>(readable.size()), 0);
    for (int i = 0; i < count; ++i) {
        auto& accepted = *static_cast<Accepted*>(readable[static_cast<std::size_t>(i)].data.ptr);
        if (accepted.stream.open()) read(accepted);
    }
}

}  // namespace gantry::transport::ucx
