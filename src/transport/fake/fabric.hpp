// SPDX-License-Identifier: BSD-3-Clause
//
// Fabric: one way between the ranks of a simulated world - the shared memory of the nodes, or the
// network between them. It holds the links, what is in flight, who is dead, and the exact counts
// and trace of what was sent. FakeTransport is one rank's end of it.
//
//   send:  sender's rail --(message cost, bytes)--> latency + jitter --> receiver's rail --> inbox,
//   delivered by progress() put:   the same, then the bytes appear in the region; `done` at the
//   sender one latency later (remote completion)
//
// The bytes of a put are read when they arrive: a source that is reused before `done` is corrupt at
// the sink, always.
#pragma once

#include "model/cost.hpp"
#include "model/timeline.hpp"
#include "transport/transport.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace gantry::transport::fake {

enum class Medium : std::uint8_t { shared_memory, network };
// Whether messages between two ranks may overtake each other.
enum class Order : std::uint8_t { kept, shuffled };

struct FabricOptions {
    Medium medium = Medium::network;
    model::Link link;
    Order order = Order::kept;
    Nanoseconds jitter = 0;                      // up to this much is added to every latency
    std::function<bool(MessageKind)> duplicate;  // kinds of messages that sometimes arrive twice
    Bytes host_pool = 4 * kMiB;
    Bytes device_pool = 16 * kMiB;
    bool refuse_pools = false;  // the node has no shared memory left
    model::Rate bounce;         // an extra host copy on each side of the wire; empty: none
    // Stored bytes behind an address that the host must not touch (GPUDirect); null where there are
    // none.
    std::function<std::byte*(int rank, const void* address, Bytes bytes)> behind;
};

// What was sent, by kind of message. Puts are counted apart.
struct Count {
    std::uint64_t messages = 0;
    Bytes header_bytes = 0, payload_bytes = 0;
};
struct TraceRow {
    Nanoseconds time;  // when it was handed over
    int from, to;
    int kind;  // MessageKind, or kPut
    Bytes header_bytes, payload_bytes;
};
inline constexpr int kPut = -1;

class FakeTransport;

class Fabric {
  public:
    Fabric(model::Timeline& timeline, FabricOptions options, std::vector<int> nodes);
    ~Fabric();

    FakeTransport& end(int rank) { return *ends_[static_cast<std::size_t>(rank)]; }
    const FabricOptions& options() const { return options_; }
    bool reaches(int from, int to) const;
    // The process is gone: what has not left it is lost, peers hear of it `notice` later.
    void kill(int rank, Nanoseconds notice);
    bool dead(int rank) const { return died_at_[static_cast<std::size_t>(rank)] >= 0; }

    const Count& count(MessageKind kind) const { return counts_[kind]; }
    const Count& puts() const { return puts_; }
    Bytes bytes_on_the_wire() const;
    std::uint64_t messages() const;
    const std::vector<TraceRow>& trace() const { return trace_; }
    void reset_counts();

  private:
    friend class FakeTransport;
    struct Packet {
        int from;
        MessageKind kind;
        std::vector<std::byte> header, payload;
    };
    struct Rail {
        Nanoseconds sends_until = 0, receives_until = 0;
    };
    // Control messages go by their own queue pair, as a transport should send them: the adapter
    // takes packets of both in turn, so they wait for a packet of the bulk and not for all that is
    // queued. With `link.control_max` 0 there is one queue for all.
    enum class Queue : std::uint8_t { bulk, control };
    struct OwnedRegion {
        int owner;
        std::byte* bytes;
        Bytes size;
    };
    struct Flight {
        Nanoseconds left = 0, arrives = 0;
    };
    Flight fly(int from, int to, int rail, model::Transfer transfer, Bytes bytes);
    void send(int from, int to, Packet packet);
    void put(int from, int to, int rail, const std::byte* source, Bytes bytes, const RemoteKey& key,
             Bytes offset, Completion& done);
    Status write(int from, int to, const std::byte* source, Bytes bytes, const RemoteKey& key,
                 Bytes offset);
    bool lost_with(int rank, Nanoseconds moment) const;
    Rail& rail(int rank, int index, Queue queue) {
        return (queue == Queue::bulk
                    ? rails_
                    : control_rails_)[static_cast<std::size_t>(rank * options_.link.rails + index)];
    }

    model::Timeline& timeline_;
    FabricOptions options_;
    std::vector<int> nodes_;
    std::vector<std::unique_ptr<FakeTransport>> ends_;
    std::vector<Rail> rails_, control_rails_, bounces_;
    std::vector<Nanoseconds> died_at_;  // -1: alive
    std::map<std::pair<int, int>, Nanoseconds> last_arrival_;
    std::map<std::uint64_t, OwnedRegion> regions_;
    std::uint64_t next_region_ = 1;
    std::array<Count, 256> counts_;
    Count puts_;
    std::vector<TraceRow> trace_;
};

class FakeTransport final : public Transport {
  public:
    FakeTransport(Fabric& fabric, int rank) : fabric_(fabric), rank_(rank) {}
    const char* name() const override { return "fake"; }
    PeerFacts facts(int peer) const override;
    bool reaches(int peer) const override { return fabric_.reaches(rank_, peer); }
    Status publish(job::Job& job) override;
    Status open(job::Job& job, Receiver& receiver) override;
    Task<Status> close(Executor& executor) override;
    Status send(int peer, MessageKind kind, ConstSpan header, ConstSpan payload) override;
    Result<Region> register_memory(void* address, Bytes bytes) override;
    void release_memory(const Region& region) override;
    RemoteKey key(const Region& region) const override;
    void put(int peer, int rail, const void* source, Bytes bytes, const RemoteKey& key,
             Bytes offset, Completion& done) override;
    Result<std::span<std::byte>> own_pool(Pool pool) override;
    Result<std::span<std::byte>> peer_pool(int peer, Pool pool) override;
    std::uint32_t* claim_words(int rank) override;
    int progress() override;
    std::size_t waiting() const { return inbox_.size() + put_ends_.size(); }

  private:
    friend class Fabric;
    struct PutEnd {
        Completion* done;
        Status status;
    };
    struct Loss {
        int peer;
        Status why;
    };
    Fabric& fabric_;
    const int rank_;
    Receiver* receiver_ = nullptr;
    std::deque<Fabric::Packet> inbox_;
    std::deque<PutEnd> put_ends_;
    std::deque<Loss> losses_;
    std::vector<std::byte> pools_[2];
    std::unique_ptr<std::array<std::uint32_t, 1024>> claims_;
};

}  // namespace gantry::transport::fake
