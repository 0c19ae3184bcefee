// SPDX-License-Identifier: BSD-3-Clause
//
// Several rails: one that fails is not the loss of the peer.
//
// Frames are numbered and kept until the peer has acknowledged them; those of a rail that failed go
// again by another one, and the receiver drops repeats. Puts go again when whoever divided them
// (transfer/rail_scheduler) starts them anew. So a put is reported as failed only when its bytes cannot
// arrive any more: late ones could overwrite what the program has there by then.
//
//   who notices                                   peer
//     |  closes its end, holds its failed puts      |
//     | -- 249 rail down | rail | tickets --------> |  by another rail: closes its end, and takes no put
//     | <- 248 rail closed | rail ----------------- |  with an older ticket by that rail any more
//     |  reports its failed puts                    |
//
// What notices: UCX's error handler, and TCP keepalives (tcp_keepalive.hpp; over cards card keepalives, card_keepalive.cpp). A silent TCP keepalive
// counts only while the TCP keepalive of another rail is answered; when all are silent, the peer as a whole has
// GANTRY_PEER_TIMEOUT.
#include "base/log.hpp"
#include "transport/ucx/peer.hpp"
#include "transport/ucx/port_state.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace gantry::transport::ucx {
namespace {

constexpr Nanoseconds kKeepaliveBusy = 50 * kMillisecond, kKeepaliveIdle = kSecond;
constexpr Nanoseconds kLook = 10 * kMillisecond;
// Between tries to take a rail back. Over Ethernet a card looks for its peer's address for a second, in
// which nothing else is done: where both ports work and what is between them does not, that is seldom.
constexpr Nanoseconds kFirstPause = 250 * kMillisecond, kLongestPause = 4 * kSecond,
                      kLongestPauseOfCard = 32 * kSecond;
constexpr Nanoseconds kOneTry = kSecond;
// Frames are acknowledged by the next frame back; alone after so many, or so long.
constexpr int kMostUnacknowledged = 16;
constexpr Nanoseconds kAcknowledgeLate = 20 * kMillisecond;
constexpr Nanoseconds kDrain = kSecond;

template <class Content>
ConstSpan bytes_of(const Content& content) {
    return std::as_bytes(std::span(&content, 1));
}

}  // namespace

std::uint32_t UcxTransport::rails_up(int rank) const {
    if (!several()) return ~0u;
    std::uint32_t up = 0;
    for (const RailTo& rail : peers_[static_cast<std::size_t>(rank)]->rails)
        if (rail.may_carry()) up |= 1u << rail.index;
    return up;
}

// The home rail, or the next one that stands in for it; null when none is up.
UcxTransport::RailTo* UcxTransport::message_rail(Peer& peer) const {
    for (std::size_t step = 0; step < peer.rails.size(); ++step) {
        RailTo& rail =
            peer.rails[(static_cast<std::size_t>(home_rail_) + step) % peer.rails.size()];
        if (rail.may_carry() && rail.endpoint != nullptr) return &rail;
    }
    return nullptr;
}

bool UcxTransport::another_carries(const RailTo& rail) const {
    return std::ranges::any_of(rail.peer->rails, [&](const RailTo& other) {
        return &other != &rail && other.may_carry() && other.endpoint != nullptr;
    });
}

// --- a rail fails --------------------------------------------------------------------------------

void UcxTransport::break_rail(int rank, int rail) {
    note_broken(peer_of(rank).rails[static_cast<std::size_t>(rail)], UCS_ERR_CONNECTION_RESET);
}

void UcxTransport::fail_rail(RailTo& rail, std::string_view why) {
    using State = RailTo::State;
    Peer& peer = *rail.peer;
    const bool tried = rail.state == State::trying;
    if (rail.state != State::up && !tried) return;
    rail.state = tried ? State::down : State::failing;
    rail.broken = false;
    try_later(rail, clock_.now());
    peer.keys.drop(*library_, rail.index);
    close_endpoint(rail, UCP_EP_CLOSE_FLAG_FORCE);
    rail.tcp_keepalive.close();
    rail.tcp_keepalive_ended.reset();
    close_bulk_of(rail);
    if (tried) return;  // it carried nothing
    rail.peer_is_back = rail.told_back = false;
    log::info("ucx: rail {} to rank {} failed ({}); the other rails carry on", rail.index,
              peer.rank, why);
    ++rail_counts_.failed;
    ++events_;
    fail_unanswered(peer, rail.index);
    send_again(rail);
    const RailDown down{static_cast<std::uint32_t>(rail.index), ++rail.failures, next_ticket_};
    Status told = append(peer, kRailDown, bytes_of(down), {});
    if (!told.ok()) log::error("{}", told.text());
    visit_in_progress(peer);
}

// Frames that UCX still has come back with an error first (on_sent).
void UcxTransport::send_again(RailTo& rail) {
    std::deque<Frame*>& full = rail.peer->full;
    std::size_t at = 0;  // in front of what is new, in their order
    for (Frame* frame : rail.peer->kept) {
        if (frame->rail != rail.index || frame->queued) continue;
        if (frame->with_ucx) {
            frame->again = true;
            continue;
        }
        frame->queued = true;
        full.insert(full.begin() + static_cast<std::ptrdiff_t>(at++), frame);
        ++rail_counts_.frames_again;
    }
    visit_in_progress(*rail.peer);
}

// True: the put failed with its rail, and is reported when the peer has closed that.
bool UcxTransport::hold(Putting& putting) {
    Peer& peer = peer_of(putting.peer);
    if (!several() || !peer.lost.ok() || receiver_ == nullptr) return false;
    RailTo& rail = peer.rails[static_cast<std::size_t>(putting.rail)];
    if (rail.state == RailTo::State::down || rail.state == RailTo::State::trying) return false;
    note_broken(rail, putting.status);
    rail.held.push_back(&putting);
    return true;
}

void UcxTransport::release_held(RailTo& rail) {
    for (Putting* putting : std::exchange(rail.held, {}))
        end(*putting);
}

// --- the handshake -------------------------------------------------------------------------------

void UcxTransport::on_rail_message(Peer& peer, MessageKind kind, ConstSpan header) {
    if (kind == kRailDown && header.size() == sizeof(RailDown)) {
        RailDown down{};
        std::memcpy(&down, header.data(), sizeof down);
        if (down.rail < peer.rails.size()) on_rail_down(peer, down);
    } else if (kind == kRailClosed && header.size() == sizeof(RailClosed)) {
        RailClosed closed{};
        std::memcpy(&closed, header.data(), sizeof closed);
        if (closed.rail >= peer.rails.size()) return;
        RailTo& rail = peer.rails[closed.rail];
        if (rail.state != RailTo::State::failing || rail.failures != closed.failure) return;
        rail.state = RailTo::State::down;
        release_held(rail);
    } else if (kind == kRailBack && header.size() == sizeof(std::uint64_t)) {
        std::uint64_t index = 0;
        std::memcpy(&index, header.data(), sizeof index);
        if (index >= peer.rails.size()) return;
        peer.rails[index].peer_is_back = true;
        peer.rails[index].next_try = 0;
    }
}

void UcxTransport::on_rail_down(Peer& peer, const RailDown& down) {
    RailTo& rail = peer.rails[down.rail];
    rail.void_below = std::max(rail.void_below, down.void_below);
    std::erase_if(peer.arriving, [&](const auto& put) {
        return put.second.rail == rail.index && put.first < rail.void_below;
    });
    close_accepted_of(rail);
    rail.owes = down.failure;
    rail.peer_is_back = rail.told_back = false;
    if (!peer.connected) {
        rail.state = RailTo::State::down;
        rail.next_try = clock_.now() + kFirstPause;
    } else if (rail.state == RailTo::State::up || rail.state == RailTo::State::trying) {
        note_broken(rail, UCS_ERR_CONNECTION_RESET);  // both directions share its connections
    }
    visit_in_progress(peer);
    answer_closed(rail);
}

// As soon as nothing of the old connection is open here.
void UcxTransport::answer_closed(RailTo& rail) {
    if (!rail.owes || rail.endpoint != nullptr || !closing_.empty()) return;
    const RailClosed closed{static_cast<std::uint32_t>(rail.index), *rail.owes};
    rail.owes.reset();
    Status told = append(*rail.peer, kRailClosed, bytes_of(closed), {});
    if (!told.ok()) log::error("{}", told.text());
    visit_in_progress(*rail.peer);
}

// --- acknowledgements ----------------------------------------------------------------------------

// Before a frame leaves by that rail.
void UcxTransport::keep(Peer& peer, Frame* frame, const RailTo& rail) {
    if (!frame->kept) {
        frame->kept = true;
        frame->number = ++peer.last_number;
        if (frame->number == 0) frame->number = ++peer.last_number;  // 0 is no number
        peer.kept.push_back(frame);
        peer.kept_bytes += frame->used;
    }
    frame->queued = false;
    frame->rail = rail.index;
    frame->write_head(frame->number, peer.received.next());
    peer.unacknowledged = 0;
}

void UcxTransport::acknowledged(Peer& peer, std::uint32_t received) {
    while (!peer.kept.empty() && is_before(peer.kept.front()->number, received)) {
        Frame* frame = peer.kept.front();
        peer.kept.pop_front();
        peer.kept_bytes -= frame->used;
        frame->kept = false;
        give_if_over(frame);
    }
    if (!peer.nothing_queued()) visit_in_progress(peer);
}

void UcxTransport::give_if_over(Frame* frame) {
    if (!frame->kept && !frame->with_ucx && !frame->queued) frames_.give(frame);
}

void UcxTransport::owe_acknowledgement(Peer& peer) {
    if (std::exchange(peer.owes_acknowledgement, true)) return;
    owing_.push_back(&peer);
}

void UcxTransport::acknowledge_frames(Nanoseconds now) {
    const bool late = now >= next_acknowledgement_;
    if (late) next_acknowledgement_ = now + kAcknowledgeLate;
    std::erase_if(owing_, [&](Peer* peer) {
        const auto told = [&] {
            peer->owes_acknowledgement = false;
            return true;
        };
        if (peer->unacknowledged == 0 || !peer->lost.ok() || peer->broken) return told();
        if (peer->left && !peer->connected) return told();
        if (!late && peer->unacknowledged < kMostUnacknowledged && !peer->left) return false;
        RailTo* rail = message_rail(*peer);
        if (rail == nullptr) return false;
        Frame* frame = frames_.take(0);
        if (frame == nullptr) return false;
        frame->begin(rank_);
        frame->write_head(0, peer->received.next());
        peer->unacknowledged = 0;
        frame->owner = peer;
        give_to_ucx(*rail, frame);
        return told();
    });
}

std::size_t UcxTransport::kept_frames(int rank) const {
    return peers_[static_cast<std::size_t>(rank)]->kept.size();
}

// --- TCP keepalives, and the way back --------------------------------------------------------------------

void UcxTransport::look_at_rails() {
    const Nanoseconds now = clock_.now();
    if (!owing_.empty()) acknowledge_frames(now);
    if (now < next_look_) return;
    next_look_ = now + kLook;
    for (Peer* peer : connected_) {
        if (!peer->lost.ok() || peer->left || peer->broken || !peer->connected) continue;
        look_at_tcp_keepalives(*peer, now);
        for (RailTo& rail : peer->rails) {
            answer_closed(rail);
            if (rail.state == RailTo::State::down && stage_ == Stage::running) try_again(rail, now);
        }
    }
    if (now < next_drain_) return;
    next_drain_ = now + kDrain;
    std::erase_if(received_tcp_keepalives_, [](const ReceivedTcpKeepalive& tcp_keepalive) {
        std::array<char, 256> bytes;
        const ssize_t got =
            recv(tcp_keepalive.socket.descriptor(), bytes.data(), bytes.size(), MSG_DONTWAIT);
        return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
    });
}

void UcxTransport::open_tcp_keepalive(RailTo& rail, Nanoseconds now) {
    if (!rails_[static_cast<std::size_t>(rail.index)].only_tcp()) return;
    Result<Door> door = door_of(*rail.peer, rail.index);
    if (!door.ok()) return;
    const Hello hello{kFrameMagic, static_cast<std::uint32_t>(rank_),
                      static_cast<std::uint32_t>(rail.peer->rank),
                      static_cast<std::uint32_t>(rail.index) | Hello::kTcpKeepalive, door->cookie};
    Result<TcpKeepalive> tcp_keepalive =
        TcpKeepalive::open(door->address, hello, config_.peer_timeout, now);
    if (!tcp_keepalive.ok()) {
        log::debug("ucx: no TCP keepalive of rail {} to rank {}: {}", rail.index, rail.peer->rank,
                   tcp_keepalive.status().text());
        return;
    }
    rail.tcp_keepalive = std::move(*tcp_keepalive);
    Status told = tell(*rail.peer, kBulkAsked, static_cast<std::uint64_t>(rail.index));
    if (!told.ok()) log::error("{}", told.text());
}

void UcxTransport::look_at_tcp_keepalives(Peer& peer, Nanoseconds now) {
    const bool busy = !peer.kept.empty() || std::ranges::any_of(peer.rails, [](const RailTo& rail) {
        return rail.puts > 0 || rail.state != RailTo::State::up;
    });
    for (RailTo& rail : peer.rails) {
        if (rail.state != RailTo::State::up) continue;
        const bool was_open = rail.tcp_keepalive.is_open();
        if (!rail.tcp_keepalive.look(now)) {
            rail.tcp_keepalive.close();
            note_broken(rail, UCS_ERR_ENDPOINT_TIMEOUT);
        } else if (was_open && !rail.tcp_keepalive.is_open() && rail.tcp_keepalive.answered()) {
            rail.tcp_keepalive_ended = now;
        }
        if (rail.tcp_keepalive_ended && now - *rail.tcp_keepalive_ended > config_.peer_timeout)
            note_broken(rail, UCS_ERR_CONNECTION_RESET);
        if (now - rail.last_keepalive >= (busy ? kKeepaliveBusy : kKeepaliveIdle))
            send_keepalive(rail, now);
    }
    for (RailTo& rail : peer.rails) {
        // A card connects at its first use, and many ranks may do so at once.
        const Nanoseconds patience =
            rail.answered() ? config_.rail_silence : std::max(config_.rail_silence, kOneTry);
        if (!rail.may_carry() || rail.silent(now) < patience) continue;
        const bool only_this = std::ranges::any_of(peer.rails, [&](const RailTo& other) {
            return &other != &rail && other.may_carry() && other.answered() &&
                   *other.answered() > now - rail.silent(now);
        });
        if (only_this) note_broken(rail, UCS_ERR_ENDPOINT_TIMEOUT);
    }
}

void UcxTransport::try_later(RailTo& rail, Nanoseconds now) {
    const bool tcp = rails_[static_cast<std::size_t>(rail.index)].only_tcp();
    rail.pause = std::clamp(2 * rail.pause, kFirstPause, tcp ? kLongestPause : kLongestPauseOfCard);
    rail.next_try = now + rail.pause;
}

// A rail is tried when nothing of its past is under way; by the lower rank first, since UCX 1.13 reads a
// connection that it has freed when both connect at the same moment. Of a card both ends look at their
// ports first, and the higher rank says when its own works.
bool UcxTransport::may_try(RailTo& rail, Nanoseconds now) {
    if (now < rail.next_try || rail.puts > 0 || rail.frames > 0 || rail.card_keepalive.steps > 0 ||
        !closing_.empty())
        return false;
    const Rail& way = rails_[static_cast<std::size_t>(rail.index)];
    const bool higher = rank_ > rail.peer->rank;
    if (way.only_tcp()) return !higher || rail.peer_is_back;
    if (!ports_are_active(way, "/sys")) {
        rail.next_try = now + kFirstPause;
        return false;
    }
    if (higher && !std::exchange(rail.told_back, true)) tell_back(rail);
    return rail.peer_is_back;
}

// Over TCP a TCP keepalive goes first: UCX has no patience for a way that is not there.
void UcxTransport::try_again(RailTo& rail, Nanoseconds now) {
    if (!may_try(rail, now)) return;
    const auto later = [&] {
        rail.tcp_keepalive.close();
        try_later(rail, now);
    };
    if (rails_[static_cast<std::size_t>(rail.index)].only_tcp()) {
        if (!rail.tcp_keepalive.is_open()) {
            open_tcp_keepalive(rail, now);
            return rail.tcp_keepalive.is_open() ? void() : later();
        }
        if (!rail.tcp_keepalive.look(now) || !rail.tcp_keepalive.is_open() ||
            rail.tcp_keepalive.silent(now) > kOneTry)
            return later();
        if (!rail.tcp_keepalive.answered()) return;
    }
    Result<WireUpOf> known = wire_up_of(rail.peer->rank);
    if (!known.ok()) return later();
    rail.peer->keys.drop(*library_, rail.index);
    if (Status refused = connect_rail(rail, *known)) {
        log::debug("{}", refused.text());
        return later();
    }
    rail.state = RailTo::State::trying;
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    how.cb.send = &UcxTransport::on_tried;
    how.user_data = &rail;
    void* request = (*library_)->ucp_ep_flush_nbx(rail.endpoint, &how);
    if (UCS_PTR_IS_PTR(request)) return;
    if (UCS_PTR_STATUS(request) == UCS_OK) return came_back(rail);
    note_broken(rail, UCS_PTR_STATUS(request));
}

void UcxTransport::on_tried(void* request, ucs_status_t status, void* arg) {
    RailTo& rail = *static_cast<RailTo*>(arg);
    UcxTransport& self = rail.peer->owner;
    (*self.library_)->ucp_request_free(request);
    if (rail.state != RailTo::State::trying || self.receiver_ == nullptr) return;
    if (status == UCS_OK) return self.came_back(rail);
    self.note_broken(rail, status);
}

void UcxTransport::came_back(RailTo& rail) {
    rail.state = RailTo::State::up;
    rail.pause = 0;
    ++rail_counts_.returned;
    log::info("ucx: rail {} to rank {} is back", rail.index, rail.peer->rank);
    tell_back(rail);
}

void UcxTransport::tell_back(const RailTo& rail) {
    Status told = tell(*rail.peer, kRailBack, static_cast<std::uint64_t>(rail.index));
    if (!told.ok()) log::error("{}", told.text());
}

}  // namespace gantry::transport::ucx
