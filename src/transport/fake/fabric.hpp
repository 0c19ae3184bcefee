// SPDX-License-Identifier: BSD-3-Clause
//
// Fabric: one way between the ranks of a simulated world - the shared memory of the nodes, or the
// network between them. It holds the links, what is in flight, who is dead, and the exact counts
// and trace of what was sent. FakeTransport is one rank's end of it.
//
//   send:  sender's rail --(message cost, bytes)--> latency + jitter --> receiver's rail --> inbox,
//          delivered by progress()
//   put:   the same, then the bytes appear in the region; `done` at the sender one latency later
//          (remote completion)
//   get:   a message to the peer's card, which reads the region then; the bytes come back as those of
//          a put
//
// The bytes of a put are read when they arrive: a source that is reused before `done` is corrupt at
// the sink, always. Bytes put into device memory show only when its owner settles them: a receiver
// that forgets to is corrupt, always.
#pragma once

#include "model/cost.hpp"
#include "model/timeline.hpp"
#include "transport/registration_cache.hpp"
#include "transport/transport.hpp"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <set>
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
    // Registrations that a rank keeps, and whether it hears of what its program unmaps
    // (FakeTransport::unmapped).
    RegistrationLimits registrations{1024, 64 * kGiB};
    HostPages host_pages = HostPages::noticed;
    std::function<bool(int rank, const Extent& extent)> refuse_registration;
    bool trace = true;  // keeps a row of each message
    // Asked before each message leaves; a failure is its sender's.
    std::function<Status(int rank, MessageKind kind)> on_send;
    // Whose rails reach device memory, where the link says that rails do; empty: everybody's.
    std::function<bool(int rank)> gpudirect;
    // Messages of at least so much expose the memory that they are about; 0: none.
    Bytes exposes_from = 0;
    // Whether that rank may read the memory of others; empty: where the link says what it costs.
    std::function<bool(int rank)> reads;
    // Asked at each such read of that rank: a refusal in the middle.
    std::function<bool(int rank)> refuse_read;
    // The rank's processor works for so long.
    std::function<void(int rank, Nanoseconds time)> spend;
    // That rank's next progress() has something to see.
    std::function<void(int rank)> on_arrival;
};

// What was sent, by kind of message. Puts are counted apart.
struct Count {
    std::uint64_t messages = 0;
    Bytes header_bytes = 0, payload_bytes = 0;
};
struct TraceRow {
    Nanoseconds time;  // when it was handed over
    int from, to;
    int kind;  // MessageKind, kPut, kFetch, kRead or kGet
    Bytes header_bytes, payload_bytes;
};
inline constexpr int kPut = -1;
inline constexpr int kFetch = -2;
inline constexpr int kRead = -3;
inline constexpr int kGet = -4;

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

    // A port of that rank stops. What it carries never arrives: puts fail `notice` later, and
    // messages go over another rail then. Until `restore_rail` both ends do without it. Ranks between
    // which no rail is left are lost to each other.
    void fail_rail(int rank, int rail, Nanoseconds notice);
    void restore_rail(int rank, int rail);
    // The rails between two ranks that are known to work, as bits.
    std::uint32_t rails_up(int from, int to) const;

    bool reaches_device(int rank) const {
        return options_.link.device_memory && (!options_.gpudirect || options_.gpudirect(rank));
    }
    // What cards wrote to that rank's device memory shows now (Device::settle_network_writes).
    void settle(int rank);

    const Count& count(MessageKind kind) const { return counts_[kind]; }
    const Count& puts() const { return puts_; }
    const Count& gets() const { return gets_; }
    Bytes bytes_on_the_wire() const;
    std::uint64_t messages() const;
    // What that rank has said (SharedSegment::host_rates).
    std::uint64_t& host_rates(int rank);
    // Reads of other ranks' memory go at that rate from now on.
    void set_read_rate(model::Rate rate) { options_.link.read_rate = rate; }
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
    static constexpr Nanoseconds kNever = -1;
    struct Outage {
        Nanoseconds from = kNever, noticed = 0;
    };
    // Control messages go by their own queue pair, as a transport should send them: the adapter
    // takes packets of both in turn, so they wait for a packet of the bulk and not for all that is
    // queued. With `link.control_max` 0 there is one queue for all.
    enum class Queue : std::uint8_t { bulk, control };
    struct OwnedRegion {
        std::byte* bytes;
        Bytes size;
        MemoryPlace place;
    };
    // Written to device memory and not yet visible there.
    struct Unsettled {
        std::byte* destination;
        std::vector<std::byte> bytes;
    };
    struct Exposure {
        const std::byte* source;
        Bytes bytes;
        Completion* done;
    };
    struct Flight {
        Nanoseconds left = 0, arrives = 0;
        int rail = 0;
    };
    const Outage& outage(int rank, int rail) const {
        return outages_[static_cast<std::size_t>(rank * options_.link.rails + rail)];
    }
    // When it is known that what left at `left` on that rail is lost; kNever: it is not.
    Nanoseconds lost_until(int from, int to, int rail, Nanoseconds moment) const;
    // A rail for messages: the first one that is not known to be down.
    int message_rail(int from, int to) const;
    void deliver(int from, int to, Flight flight, std::shared_ptr<const Packet> packet);
    Flight fly(int from, int to, int rail, model::Transfer transfer, Bytes bytes,
               const model::Link& link);
    model::Link link_between(MemoryPlace read, MemoryPlace written) const;
    void send(int from, int to, Packet packet);
    void put(int from, int to, int rail, const std::byte* source, Bytes bytes, const RemoteKey& key,
             Bytes offset, Completion& done);
    void get(int to, int from, int rail, std::byte* sink, Bytes bytes, const Region& into,
             const RemoteKey& key, Bytes offset, Completion& done);
    void get_exposed(int to, int from, std::uint64_t number, std::byte* sink, Bytes bytes,
                     Completion& done);
    void read_memory(int to, int from, const std::byte* source, std::byte* sink, Bytes bytes,
                     Completion& done);
    Result<std::byte*> place(int to, Bytes bytes, const RemoteKey& key, Bytes offset,
                             const char* what);
    MemoryPlace place_of(int to, const RemoteKey& key) const;
    Status write(int from, int to, const std::byte* source, Bytes bytes, const RemoteKey& key,
                 Bytes offset);
    void store(int rank, MemoryPlace place, std::byte* sink, const std::byte* read, Bytes bytes);
    bool lost_with(int rank, Nanoseconds moment) const;
    void note(const TraceRow& row) {
        if (options_.trace) trace_.push_back(row);
    }
    Rail& rail(int rank, int index, Queue queue) {
        return (queue == Queue::bulk
                    ? rails_
                    : control_rails_)[static_cast<std::size_t>(rank * options_.link.rails + index)];
    }

    model::Timeline& timeline_;
    FabricOptions options_;
    std::vector<int> nodes_;
    std::map<int, std::vector<int>> ranks_of_node_;
    std::map<std::pair<int, std::uint64_t>, OwnedRegion> regions_;  // by owner and its id
    std::map<std::pair<int, std::uint64_t>, Exposure> exposures_;  // by who exposes, and its number
    std::vector<std::unique_ptr<FakeTransport>> ends_;
    std::map<int, std::vector<Unsettled>> unsettled_;  // by rank
    std::vector<Rail> rails_, control_rails_, bounces_;
    std::vector<Nanoseconds> caps_;  // of each rank: its rails together are busy until then
    std::vector<Outage> outages_;
    std::vector<Nanoseconds> died_at_;  // -1: alive
    std::map<std::pair<int, int>, Nanoseconds> last_arrival_;
    std::array<Count, 256> counts_;
    Count puts_, gets_;
    std::vector<TraceRow> trace_;
};

class FakeTransport final : public Transport, private Registrar {
  public:
    FakeTransport(Fabric& fabric, int rank);
    const char* name() const override { return "fake"; }
    PeerFacts facts(int peer) const override;
    bool reaches(int peer) const override { return fabric_.reaches(rank_, peer); }
    Status publish(job::Job& job) override;
    Status open(job::Job& job, Receiver& receiver) override;
    Task<Status> close(Executor& executor) override;
    Status send(int peer, MessageKind kind, ConstSpan header, ConstSpan payload) override;
    Result<Region> register_memory(const Extent& extent) override;
    void release_memory(const Region& region) override;
    RemoteKey key(const Region& region) const override;
    void put(int peer, int rail, const void* source, Bytes bytes, const Region& from,
             const RemoteKey& key, Bytes offset, Completion& done) override;
    void get(int peer, int rail, void* sink, Bytes bytes, const Region& into, const RemoteKey& key,
             Bytes offset, Completion& done) override;
    std::uint32_t rails_up(int peer) const override { return fabric_.rails_up(rank_, peer); }
    bool exposes(int) override { return fabric_.options_.exposes_from > 0; }
    Status expose(int peer, MessageKind kind, ConstSpan header, std::uint64_t exposure,
                  const void* source, Bytes bytes, Completion& done) override;
    void take_back(int peer, std::uint64_t exposure) override;
    void get_exposed(int peer, std::uint64_t exposure, void* sink, Bytes bytes,
                     Completion& done) override;
    SharedSegment* shared_segment(int rank) override;
    bool reads_memory(int) override;
    void read_memory(int peer, std::uint64_t address, void* sink, Bytes bytes,
                     Completion& done) override {
        fabric_.read_memory(rank_, peer, reinterpret_cast<const std::byte*>(address),
                            static_cast<std::byte*>(sink), bytes, done);
    }
    int progress() override;
    std::uint64_t looks() const { return looks_; }  // calls of progress()
    Stats stats() const override { return {cache_.counts(), {}}; }
    // The program gives that host memory back to the system.
    void unmapped(const void* address, Bytes bytes) {
        cache_.notes().note(reinterpret_cast<std::uintptr_t>(address), bytes);
    }
    std::size_t waiting() const { return inbox_.size() + put_ends_.size(); }

  private:
    friend class Fabric;
    struct PutEnd {
        Completion* done;
        Status status;
    };
    struct Fetch {
        int lender;
        Completion* done;  // null: it has ended
    };
    struct Loss {
        int peer;
        Status why;
    };
    Status map(std::uint64_t id, const Extent& extent) override;
    void unmap(std::uint64_t id) override;
    // What the next progress() sees.
    void came(Fabric::Packet packet) {
        inbox_.push_back(std::move(packet));
        tell();
    }
    void ended(PutEnd end) {
        put_ends_.push_back(std::move(end));
        tell();
    }
    void lost(Loss loss) {
        losses_.push_back(std::move(loss));
        tell();
    }
    void tell() {
        if (fabric_.options_.on_arrival) fabric_.options_.on_arrival(rank_);
    }

    Fabric& fabric_;
    const int rank_;
    RegistrationCache cache_;
    Receiver* receiver_ = nullptr;
    std::uint64_t looks_ = 0;
    std::deque<Fabric::Packet> inbox_;
    std::deque<PutEnd> put_ends_;
    std::deque<Loss> losses_;
    std::vector<std::shared_ptr<Fetch>> fetches_;
    // That rank's, for others of its node, too.
    struct Segment final : SharedSegment {
        explicit Segment(FakeTransport& of) : owner(of) {}
        Result<std::span<std::byte>> pool(Pool pool) override;
        std::uint32_t* claim_words() override { return claims.data(); }
        std::span<Flag> flags() override { return all_flags; }
        Flag* put_flag(int to) override {
            return &all_flags[kSlotFlags + static_cast<std::size_t>(to)];
        }
        std::span<std::byte> node_segment() override;
        bool left() const override { return false; }  // nobody leaves the world
        void note_gpu(std::uint64_t gpu) override { gpus.insert(gpu); }
        bool others_use(std::uint64_t gpu) const override;
        std::uint64_t* host_rates() override { return &rates; }

        FakeTransport& owner;
        // Made when it is asked for. Pages that nobody touches take no memory, of a thousand ranks.
        using Zeroed = std::unique_ptr<void, decltype(&std::free)>;
        Zeroed pools[2] = {{nullptr, &std::free}, {nullptr, &std::free}};
        Zeroed node_segment_memory{nullptr, &std::free};
        std::array<std::uint32_t, kClaimWords> claims{};
        std::vector<Flag> all_flags;
        std::set<std::uint64_t> gpus;  // that its rank uses
        std::uint64_t rates = 0;
    };
    std::unique_ptr<Segment> segment_;  // made when it is asked for
};

}  // namespace gantry::transport::fake
