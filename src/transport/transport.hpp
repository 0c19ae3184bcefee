// SPDX-License-Identifier: BSD-3-Clause
//
// How bytes reach a peer. A Transport delivers active messages and puts bytes into registered or
// shared memory, on any rail; it never matches and knows nothing of MPI. Order between
// messages is not promised across rails: the p2p layer numbers envelopes. Implementations: self/,
// shm/, ucx/, fake/. Nothing blocks; handlers are called from progress() only, and must not call
// progress().
//
// A message is a small header and, optionally, a payload (gathered from one span). `send` always
// accepts: what does not fit in the peer's ring or window now is copied and queued. The payload is
// not referenced after `send` returns unless `sent` is given.
#pragma once

#include "base/status.hpp"
#include "base/task.hpp"
#include "job/job.hpp"
#include "transport/facts.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace gantry::transport {

using ConstSpan = std::span<const std::byte>;

// What an active message is for; the p2p layer defines the numbers (p2p/wire.hpp), a transport only
// carries them.
using MessageKind = std::uint8_t;
inline constexpr Bytes kMaxHeader = 256;

// Who receives. Spans are valid only during the call.
class Receiver {
  public:
    virtual ~Receiver() = default;
    virtual void on_message(int peer, MessageKind kind, ConstSpan header, ConstSpan payload) = 0;
    // The peer is gone (process died, connection lost for good); called once.
    virtual void on_peer_lost(int peer, const Status& why) = 0;
};

// Memory to register. Of device memory it says what classification told about the allocation around
// it; `allocation` is the driver's identity, never given twice (0: there is none).
enum class MemoryPlace : std::uint8_t { host, device };
struct Extent {
    void* address = nullptr;
    Bytes bytes = 0;
    MemoryPlace place = MemoryPlace::host;
    std::uint64_t allocation = 0;
    std::uintptr_t allocation_base = 0;
    Bytes allocation_bytes = 0;
};

// Memory that rails may reach, and its remote name (opaque bytes that travel in a CTS). The region
// may be larger than what was asked for: it is what is registered there.
struct Region {
    std::uint64_t id = 0;  // the owner's handle; 0: none
    void* address = nullptr;
    Bytes bytes = 0;
};
struct RemoteKey {
    static constexpr Bytes kLongest = 246;
    std::uint16_t length = 0;
    std::array<std::byte, kLongest> bytes;  // the transport's own encoding

    RemoteKey() = default;
    explicit RemoteKey(ConstSpan encoded) : length(static_cast<std::uint16_t>(encoded.size())) {
        GANTRY_ASSERT(encoded.size() <= kLongest);
        std::copy(encoded.begin(), encoded.end(), bytes.begin());
    }
    ConstSpan view() const { return {bytes.data(), length}; }
};

inline constexpr std::size_t kClaimWords = 1024;

// A word by which a device, or its process, tells another process that bytes lie where they belong
// (transfer/notify_flags.hpp). So many units of the device slots have one.
inline constexpr std::size_t kSlotFlags = 256;
inline constexpr unsigned kPiecesOfSlotUnit = 4;
struct alignas(64) Flag {
    std::uint32_t number = 0;
    // Likewise of each part of that unit, where a message comes in pieces.
    std::uint32_t pieces[kPiecesOfSlotUnit] = {};
};

// Where a rank posts what it brings to collective operations (transfer/node_segment.hpp).
inline constexpr Bytes kNodeSegmentBytes = 512 * kKiB;

// The two pools of shared slots in a rank's segment (docs/design/staged-pipeline.md).
enum class Pool : std::uint8_t { host_cells, device_slots };

// What one rank shares with the others of its node, as this process sees it. What cannot be
// mapped is empty or null.
class SharedSegment {
  public:
    virtual ~SharedSegment() = default;
    // Slots. This rank's own pool is reserved at the first call (an error when the node is full); a
    // peer's is mapped at the first call.
    virtual Result<std::span<std::byte>> pool(Pool pool) = 0;
    // kClaimWords words (transfer/claim_words.hpp).
    virtual std::uint32_t* claim_words() = 0;
    // All flags, on pages of their own; the first kSlotFlags are those of its slots.
    virtual std::span<Flag> flags() = 0;
    // The one of them that tells of its puts to another rank of the node.
    virtual Flag* put_flag(int to) = 0;
    // The node segment, kNodeSegmentBytes on pages of their own, at first all zero; makes this rank's own. Empty as
    // long as that rank has no segment.
    virtual std::span<std::byte> node_segment() = 0;
    // Whether that rank has left MPI in order: nothing more comes from it.
    virtual bool left() const = 0;
    // Of this rank's own segment: it uses a GPU, named by a number that is not 0
    // (transfer/gpu_neighbours.hpp); and whether another rank does, as far as it said so.
    virtual void note_gpu(std::uint64_t gpu) = 0;
    virtual bool others_use(std::uint64_t gpu) const = 0;
    // A word in which that rank says what it has measured (transfer/host_reads.hpp), at first 0; null:
    // there is none.
    virtual std::uint64_t* host_rates() { return nullptr; }
};

class Transport {
  public:
    virtual ~Transport() = default;
    virtual const char* name() const = 0;
    virtual PeerFacts facts(int peer) const = 0;
    // Whether this transport can reach that rank at all.
    virtual bool reaches(int peer) const = 0;

    // --- start and end: wire-up data goes through the job's store, around one fence made by the
    // engine ------------------------------
    virtual Status publish(job::Job& job) = 0;                   // before the fence
    virtual Status open(job::Job& job, Receiver& receiver) = 0;  // after the fence
    virtual Task<Status> close(
        Executor& executor) = 0;  // flushes what is queued; peers may already be gone

    // --- active messages -------------------------------------------------------------------------
    virtual Status send(int peer, MessageKind kind, ConstSpan header, ConstSpan payload) = 0;
    // As send(), of a message that another one to that peer will follow soon, whatever happens: it
    // may wait for it and travel along.
    virtual Status send_with_next(int peer, MessageKind kind, ConstSpan header, ConstSpan payload) {
        return send(peer, kind, header, payload);
    }

    // --- remote memory (put == true in the facts) ------------------------------------------------
    // Registrations are cached (transport/registration_cache.hpp): `release_memory` says that this
    // use is over, and the same buffer costs a look-up when it comes again. A refusal (no
    // GPUDirect, the limit of locked memory) is an error that leaves everything as it was.
    virtual Result<Region> register_memory(const Extent& extent) = 0;
    virtual void release_memory(const Region& region) = 0;
    virtual RemoteKey key(const Region& region) const = 0;
    // Writes `bytes` at `offset` of the peer's region. `source` lies in `from`, which is registered
    // until `done`; host memory may come without (`from.id` 0). `done`: the bytes are at the peer
    // (remote completion).
    virtual void put(int peer, int rail, const void* source, Bytes bytes, const Region& from,
                     const RemoteKey& key, Bytes offset, Completion& done) = 0;

    // Reads `bytes` at `offset` of the peer's region (get == true in the facts). `sink` lies in `into`,
    // which is registered until `done`; host memory may come without (`into.id` 0). `done`: the bytes
    // are at `sink`.
    virtual void get(int peer, int rail, void* sink, Bytes bytes, const Region& into,
                     const RemoteKey& key, Bytes offset, Completion& done);

    // The rails to that peer that work, as bits. A rail is reported as lost only when nothing that it
    // still carried can arrive any more. Messages go over another rail then, once each.
    virtual std::uint32_t rails_up(int) const { return ~0u; }

    // Why the home rail of the facts is that; empty: there is no choice.
    virtual std::string why_home_rail() const { return {}; }

    // As put(), and the peer is given that message as soon as the bytes are at their place, without
    // waiting for `done`. False: this put cannot be told of so, and nothing has happened.
    virtual bool put_and_tell(int peer, int rail, const void* source, Bytes bytes,
                              const Region& from, const RemoteKey& key, Bytes offset,
                              MessageKind kind, ConstSpan header, Completion& done);

    // --- exposed memory: large host memory that nobody copies on the way
    // A message may expose the memory that it is about: the bytes go straight to where the peer
    // wants them, once it has said where. `exposure` is a number of the sender's, never given twice.
    // Whether a message to that peer may expose now; asking may start what lets later ones do so.
    virtual bool exposes(int) { return false; }
    // As send(). `done`: the peer has got all of it, or is lost, and the memory is free again.
    virtual Status expose(int peer, MessageKind kind, ConstSpan header, std::uint64_t exposure,
                          const void* source, Bytes bytes, Completion& done);
    // The peer said that it wants the bytes another way: `done` is not completed any more.
    virtual void take_back(int, std::uint64_t) {}
    // The peer's end, once at most and all of it. `done`: the bytes are at `sink`, or the exposer is
    // lost and nothing writes there any more.
    virtual void get_exposed(int peer, std::uint64_t exposure, void* sink, Bytes bytes,
                             Completion& done);

    // --- shared memory (shared_memory == true in the facts) --------------------------------------
    // Of this rank or of another one of the node; null: nothing is shared with it. It lives as long as
    // the transport.
    virtual SharedSegment* shared_segment(int) { return nullptr; }

    // --- the peer's own memory, of the same node, which it shares with nobody (process_vm_readv)
    // Whether this process may read that of the peer; the first call finds out.
    virtual bool reads_memory(int) { return false; }
    // Bytes at an address of the peer's. `done`: they are at `sink`; MPI_ERR_UNSUPPORTED_OPERATION: they
    // cannot be read, and may come another way.
    virtual void read_memory(int peer, std::uint64_t address, void* sink, Bytes bytes,
                             Completion& done);

    // --- deaths ----------------------------------------------------------------------------------
    // That peer has died, as somebody else has noticed. A transport that delivers first what the peer had
    // sent before tells the receiver of the loss; where it does not, its caller does.
    virtual void peer_died(int /*peer*/, const Status& /*why*/) {}

    // --- progress --------------------------------------------------------------------------------
    // Delivers what has arrived and pushes what is queued; returns how many events it handled.
    virtual int progress() = 0;
    virtual Stats stats() const { return {}; }
    // Whether messages wait here for company at all: only then is flush() worth a call.
    virtual bool holds_back() const { return false; }
    // Whether messages or puts of ours wait here for progress() to go on.
    virtual bool busy() const { return false; }
    // Lets go of messages that wait here for company, without delivering anything. A caller that
    // will not come back to progress() soon asks for it (the end of a blocking call).
    virtual void flush() {}
};

}  // namespace gantry::transport
