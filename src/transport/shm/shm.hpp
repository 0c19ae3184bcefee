// SPDX-License-Identifier: BSD-3-Clause
//
// Messages between the ranks of a node through shared memory, and the pools and claim words they
// share.
//
// Each pair has a ring per direction, made at its first message, in the sender's segment.
// progress() polls the rings that were active last, a few of the others in turn, and the doorbells
// of new ones; then it pushes what found no room. A ring is written in order, and a message waits
// behind earlier ones for the same peer, so messages to one peer arrive in the order of `send`.
//
// A peer's death is noticed by looking whether it still is there, ten times a second while nothing
// arrives. What it had sent is delivered first, then Receiver::on_peer_lost is called once. close()
// waits until the peers have taken what was sent to them, because the rings vanish for who has not
// mapped them when this process ends.
//
// Ranks of other jobs that come later have a transport of their own, with rings of its own. What a
// process has once, whoever reads it, lies in the segment of its first transport, its home: pools,
// node segment, claim words, flags of slots.
#pragma once

#include "base/clock.hpp"
#include "base/config.hpp"
#include "transport/shm/backlog.hpp"
#include "transport/shm/node.hpp"
#include "transport/shm/rank_segment.hpp"
#include "transport/transport.hpp"

#include <memory>
#include <vector>

namespace gantry::transport::shm {

class ShmTransport final : public Transport {
  public:
    // References outlive the transport.
    ShmTransport(const Clock& clock, const config::Config& config);
    // For processes of several jobs, whose places are the ranks of the `job` that it is opened with.
    // `peers`: what this process calls the one at each place; -1: it is reached another way.
    ShmTransport(const Clock& clock, const config::Config& config, ShmTransport& home,
                 std::vector<int> peers);
    ~ShmTransport() override;

    const char* name() const override { return "shm"; }
    PeerFacts facts(int peer) const override;
    bool reaches(int peer) const override;
    Status publish(job::Job& job) override;
    Status open(job::Job& job, Receiver& receiver) override;
    Task<Status> close(Executor& executor) override;
    Status send(int peer, MessageKind kind, ConstSpan header, ConstSpan payload) override;
    Result<Region> register_memory(const Extent& extent) override;
    void release_memory(const Region&) override {}
    RemoteKey key(const Region&) const override { return {}; }
    void put(int peer, int rail, const void* source, Bytes bytes, const Region& from,
             const RemoteKey& key, Bytes offset, Completion& done) override;
    SharedSegment* shared_segment(int rank) override;
    bool reads_memory(int rank) override;
    void read_memory(int rank, std::uint64_t address, void* sink, Bytes bytes,
                     Completion& done) override;
    int progress() override;
    void peer_died(int peer, const Status& why) override;
    bool busy() const override { return !backlogged_.empty(); }

  private:
    struct Peer;
    // The segment of a local rank, our own one too, for the layers above.
    struct Shared final : SharedSegment {
        Shared(ShmTransport& transport, Peer& its_owner) : shm(transport), owner(its_owner) {}
        Result<std::span<std::byte>> pool(Pool pool) override;
        std::uint32_t* claim_words() override;
        std::span<Flag> flags() override;
        Flag* put_flag(int to) override;
        std::span<std::byte> node_segment() override;
        bool left() const override;
        void note_gpu(std::uint64_t gpu) override;
        bool others_use(std::uint64_t gpu) const override;
        std::uint64_t* host_rates() override {
            return shm.node_ && shm.home_ == nullptr ? &shm.node_.host_rates(owner.number)
                                                     : nullptr;
        }
        ShmTransport& shm;
        Peer& owner;
    };
    enum class Reads : std::uint8_t { unknown, allowed, refused };
    // A local rank as we know it; `number` counts the ranks of the node.
    struct Peer {
        Peer(ShmTransport& shm, int its_rank, int its_number, BacklogMemory& memory)
            : rank(its_rank), number(its_number), shared(shm, *this), backlog(memory) {}
        int rank;
        int number;
        bool lost = false;
        bool named_unreachable = false;  // for people, once
        Reads reads = Reads::unknown;
        Shared shared;
        RankSegment segment;  // its memory, mapped at first contact
        RankSegment home;     // likewise; empty where all lies in `segment`
        SegmentMapping outgoing_memory;
        RingWriter outgoing;
        Backlog backlog;
        SegmentMapping incoming_memory;
        RingReader incoming;
    };

    Peer* peer_of(int rank) const;
    Peer& numbered(int number) const { return *peers_[static_cast<std::size_t>(number)]; }
    Status make_own_segment();
    Status map_peer(Peer& peer);
    Status map_home(Peer& peer);
    int peer_at(int place) const;
    RankSegment& home_of(Peer& peer) { return home_ != nullptr ? peer.home : peer.segment; }
    const RankSegment* segment_of(Peer& peer);
    Status open_outgoing(Peer& peer);
    Status send_slowly(Peer& peer, MessageKind kind, ConstSpan header, ConstSpan payload);
    [[gnu::cold, gnu::noinline]] void open_incoming(int number);

    int poll_incoming();
    int read(Peer& peer, int most);
    int push_backlogs();
    void idle();
    void look_for_the_dead();
    void lose(Peer& peer, const Status& why);
    Status died(const Peer& peer) const;
    bool may_leave() const;

    const Clock& clock_;
    const config::Config& config_;
    ShmTransport* const home_ = nullptr;  // null: this is it
    const std::vector<int> peer_at_;      // empty: places are peers
    Receiver* receiver_ = nullptr;
    int rank_ = 0;
    int self_ = 0;  // our number on the node
    Node node_;
    RankSegment own_;
    BacklogMemory backlog_memory_;
    std::vector<std::unique_ptr<Peer>> peers_;  // by number
    std::vector<Peer*> peer_of_rank_;           // null: not on this node
    std::vector<Peer*> polled_;  // with an incoming ring; the most recently active come first
    std::size_t next_quiet_ = 0;
    std::vector<Peer*> backlogged_;
    int idle_calls_ = 0;
    Nanoseconds last_look_ = 0;
    Completion* leaving_ = nullptr;
    Nanoseconds leaving_since_ = 0;
};

}  // namespace gantry::transport::shm
