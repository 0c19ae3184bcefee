// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/shm.hpp"

#include "base/log.hpp"

#include <algorithm>
#include <utility>

namespace gantry::transport::shm {
namespace {

constexpr std::size_t kAlwaysPolled = 8;  // rings looked at in every call of progress()
constexpr std::size_t kQuietPerCall = 4;  // of the others, in turn
constexpr int kRecordsPerVisit = 32;      // of one ring, before the next has its turn
constexpr int kIdleCallsPerClock =
    32;  // reading the clock costs as much as a poll; crowded, a call takes a time slice
constexpr Nanoseconds kBetweenLooks = 100 * kMillisecond;
constexpr double kCopyBytesPerSecond = 30e9;
constexpr Nanoseconds kMessageLatency = 250;

}  // namespace

ShmTransport::ShmTransport(const Clock& clock, const config::Config& config)
    : clock_(clock), config_(config) {}
ShmTransport::ShmTransport(const Clock& clock, const config::Config& config, ShmTransport& home,
                           std::vector<int> peers)
    : clock_(clock), config_(config), home_(&home), peer_at_(std::move(peers)) {}
ShmTransport::~ShmTransport() = default;

int ShmTransport::peer_at(int place) const {
    return peer_at_.empty() ? place : peer_at_[static_cast<std::size_t>(place)];
}

PeerFacts ShmTransport::facts(int) const {
    PeerFacts facts;
    facts.shared_memory = true;
    facts.eager_max =
        largest_payload(own_ ? own_.ring_bytes() : RankLayout(1, config_.ring, 0, 0).ring_bytes());
    facts.bytes_per_second = kCopyBytesPerSecond;
    facts.message_latency = kMessageLatency;
    return facts;
}

ShmTransport::Peer* ShmTransport::peer_of(int rank) const {
    const auto index = static_cast<std::size_t>(rank);
    return index < peer_of_rank_.size() ? peer_of_rank_[index] : nullptr;
}

bool ShmTransport::reaches(int peer) const {
    return peer_of(peer) != nullptr;
}

// --- start and end -------------------------------------------------------------------------------

Status ShmTransport::publish(job::Job& job) {
    const std::vector<int> local = Node::local_ranks(job);
    if (local.size() == 1 || local.front() != job.rank()) return success();
    return node_.create(job, static_cast<int>(local.size()));
}

Status ShmTransport::open(job::Job& job, Receiver& receiver) {
    receiver_ = &receiver;
    rank_ = peer_at(job.rank());
    const std::vector<int> local = Node::local_ranks(job);
    for (std::size_t number = 0; number < local.size(); ++number) {
        const int peer = peer_at(local[number]);
        peers_.push_back(
            std::make_unique<Peer>(*this, peer, static_cast<int>(number), backlog_memory_));
        if (local[number] == job.rank()) {
            self_ = static_cast<int>(number);
        } else if (peer >= 0) {
            const auto index = static_cast<std::size_t>(peer);
            if (index >= peer_of_rank_.size()) peer_of_rank_.resize(index + 1);
            peer_of_rank_[index] = peers_.back().get();
        }
    }
    if (local.size() == 1) return success();
    if (!node_) GANTRY_TRY(node_.attach(job, local.front(), static_cast<int>(local.size())));
    GANTRY_TRY(make_own_segment());
    SegmentName home;
    if (home_ != nullptr) {
        if (!home_->own_) GANTRY_TRY(home_->make_own_segment());
        home = home_->own_.name();
    }
    node_.enter(self_, own_.name(), home);
    last_look_ = clock_.now();
    return success();
}

Status ShmTransport::make_own_segment() {
    const auto members = static_cast<int>(peers_.size());
    const RankLayout layout = home_ != nullptr ? RankLayout(members, config_.ring, 0, 0, 0)
                                               : RankLayout(members, config_.ring,
                                                            config_.host_pool, config_.device_pool);
    Result<RankSegment> made = RankSegment::create(layout);
    GANTRY_TRY(made.status());
    own_ = std::move(made.value());
    backlog_memory_.set_largest(Backlog::bytes_for(kMaxHeader, largest_payload(own_.ring_bytes())));
    return success();
}

Task<Status> ShmTransport::close(Executor& executor) {
    if (node_) {
        leaving_since_ = clock_.now();
        if (!may_leave()) {
            Completion left(executor);
            leaving_ = &left;
            Status status = co_await left;
            GANTRY_CO_TRY(status);
        }
        node_.leave(self_);
    }
    receiver_ = nullptr;
    co_return success();
}

// Peers must have taken what we sent, and, if we made the node segment, have found it.
bool ShmTransport::may_leave() const {
    for (const auto& peer : peers_) {
        if (peer->number == self_ || peer->lost) continue;
        const MemberState state = node_.state(peer->number);
        if (state == MemberState::left) continue;
        // Who does not come within the limit died before it could tell its process id.
        if (state == MemberState::absent && self_ == 0 &&
            clock_.now() - leaving_since_ < config_.peer_timeout)
            return false;
        if (!peer->backlog.empty()) return false;
        if (peer->outgoing_memory && !peer->outgoing.is_drained()) return false;
    }
    return true;
}

// --- sending -------------------------------------------------------------------------------------

Status ShmTransport::send(int rank, MessageKind kind, ConstSpan header, ConstSpan payload) {
    Peer* peer = peer_of(rank);
    GANTRY_ASSERT(peer != nullptr && header.size() <= kMaxHeader);
    if (peer->outgoing_memory && peer->backlog.empty() && !peer->lost) [[likely]]
        if (peer->outgoing.write(kind, header, payload)) return success();
    return send_slowly(*peer, kind, header, payload);
}

Status ShmTransport::send_slowly(Peer& peer, MessageKind kind, ConstSpan header,
                                 ConstSpan payload) {
    GANTRY_ASSERT(payload.size() <= largest_payload(own_.ring_bytes()));
    if (peer.lost)
        return failure(MPI_ERR_PROC_ABORTED, "sending to rank {}: its process has ended",
                       peer.rank);
    if (!peer.outgoing_memory) {
        GANTRY_TRY(open_outgoing(peer));
        if (peer.outgoing.write(kind, header, payload)) return success();
    }
    const bool first = peer.backlog.empty();
    GANTRY_TRY(peer.backlog.append(kind, header, payload));
    if (first) backlogged_.push_back(&peer);
    return success();
}

Status ShmTransport::open_outgoing(Peer& peer) {
    GANTRY_TRY(own_.reserve_ring(peer.number));
    Result<SegmentMapping> memory = own_.map_ring(peer.number);
    GANTRY_TRY(memory.status());
    peer.outgoing_memory = std::move(memory.value());
    peer.outgoing =
        RingWriter(peer.outgoing_memory.address(), own_.ring_bytes(), own_.consumed(peer.number));
    node_.ring_doorbell(peer.number, self_);
    return success();
}

int ShmTransport::push_backlogs() {
    int pushed = 0;
    for (Peer* peer : backlogged_)
        pushed +=
            peer->backlog.drain([peer](MessageKind kind, ConstSpan header, ConstSpan payload) {
                return peer->outgoing.write(kind, header, payload);
            });
    std::erase_if(backlogged_, [](const Peer* peer) { return peer->backlog.empty(); });
    return pushed;
}

// --- receiving -----------------------------------------------------------------------------------

Status ShmTransport::map_peer(Peer& peer) {
    if (peer.segment) return success();
    if (node_.state(peer.number) == MemberState::absent)
        return failure(MPI_ERR_INTERN, "shm: rank {} has no segment yet", peer.rank);
    Result<RankSegment> segment = RankSegment::open(node_.member(peer.number).segment);
    if (!segment.ok()) return segment.status().with(fmt::format("reaching rank {}", peer.rank));
    peer.segment = std::move(segment.value());
    return success();
}

Status ShmTransport::map_home(Peer& peer) {
    if (home_ == nullptr) return map_peer(peer);
    if (peer.home) return success();
    if (node_.state(peer.number) == MemberState::absent)
        return failure(MPI_ERR_INTERN, "shm: rank {} has no segment yet", peer.rank);
    Result<RankSegment> segment = RankSegment::open(node_.member(peer.number).home);
    if (!segment.ok()) return segment.status().with(fmt::format("reaching peer {}", peer.rank));
    peer.home = std::move(segment.value());
    return success();
}

// A peer has rung for the first time: from now on its ring is polled.
void ShmTransport::open_incoming(int number) {
    Peer& peer = numbered(number);
    if (peer.lost || peer.incoming_memory) return;
    if (Status failed = map_peer(peer))
        return lose(peer, failed.error_class() == MPI_ERR_PROC_ABORTED ? died(peer) : failed);
    Result<SegmentMapping> memory = peer.segment.map_ring(self_);
    if (!memory.ok()) return lose(peer, memory.status());
    peer.incoming_memory = std::move(memory.value());
    peer.incoming = RingReader(peer.incoming_memory.address(), peer.segment.ring_bytes(),
                               peer.segment.consumed(self_));
    polled_.insert(polled_.begin(), &peer);
}

int ShmTransport::read(Peer& peer, int most) {
    const int rank = peer.rank;
    Receiver& receiver = *receiver_;
    return peer.incoming.read(most, [&](MessageKind kind, ConstSpan header, ConstSpan payload) {
        receiver.on_message(rank, kind, header, payload);
    });
}

int ShmTransport::poll_incoming() {
    int events = 0;
    const std::size_t always = std::min(polled_.size(), kAlwaysPolled);
    for (std::size_t i = 0; i < always; ++i)
        events += read(*polled_[i], kRecordsPerVisit);
    const std::size_t quiet = polled_.size() - always;
    for (std::size_t i = 0; i < std::min(quiet, kQuietPerCall); ++i) {
        next_quiet_ = (next_quiet_ + 1) % quiet;
        const auto found = polled_.begin() + static_cast<std::ptrdiff_t>(always + next_quiet_);
        const int taken = read(**found, kRecordsPerVisit);
        // It is active now: it comes first, and the last of the first moves to the others.
        if (taken > 0) std::rotate(polled_.begin(), found, found + 1);
        events += taken;
    }
    return events;
}

int ShmTransport::progress() {
    if (receiver_ == nullptr || !node_) return 0;
    int events = poll_incoming();
    events += node_.answer_doorbells(self_, [this](int number) { open_incoming(number); });
    if (!backlogged_.empty()) [[unlikely]]
        events += push_backlogs();
    if (leaving_ != nullptr && may_leave()) [[unlikely]]
        std::exchange(leaving_, nullptr)->complete(success());
    if (events == 0) idle();
    return events;
}

// --- the dead ------------------------------------------------------------------------------------

void ShmTransport::idle() {
    if (++idle_calls_ < kIdleCallsPerClock) [[likely]]
        return;
    idle_calls_ = 0;
    const Nanoseconds now = clock_.now();
    if (now - last_look_ < kBetweenLooks) return;
    last_look_ = now;
    look_for_the_dead();
}

void ShmTransport::look_for_the_dead() {
    for (const auto& peer : peers_) {
        if (peer->number == self_ || peer->lost || node_.state(peer->number) != MemberState::here)
            continue;
        const Member& member = node_.member(peer->number);
        if (maker_is_alive(member.segment, member.start_time)) continue;
        // It may have left in order between the two looks.
        if (node_.state(peer->number) == MemberState::left) continue;
        lose(*peer, died(*peer));
    }
}

void ShmTransport::peer_died(int, const Status&) {
    look_for_the_dead();
}

Status ShmTransport::died(const Peer& peer) const {
    return failure(MPI_ERR_PROC_ABORTED,
                   "rank {} (process {}) has ended without leaving MPI; its own output or the "
                   "launcher says why",
                   peer.rank, node_.member(peer.number).segment.process);
}

void ShmTransport::lose(Peer& peer, const Status& why) {
    // What it sent before it died counts; its memory lives as long as our mapping.
    while (peer.incoming_memory && read(peer, kRecordsPerVisit) > 0) {
    }
    peer.lost = true;
    peer.backlog.clear();
    std::erase(backlogged_, &peer);
    std::erase(polled_, &peer);
    next_quiet_ = 0;
    log::info("shm: rank {} is lost: {}", peer.rank, why.text());
    if (peer.rank >= 0) receiver_->on_peer_lost(peer.rank, why);
}

}  // namespace gantry::transport::shm
