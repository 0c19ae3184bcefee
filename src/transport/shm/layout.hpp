// SPDX-License-Identifier: BSD-3-Clause
//
// What lies in the shared segments. All ranks of a job use the same build of the library; the
// version at the start of each segment guards against others.
//
//   node segment (one per node, made by its lowest rank):
//     [NodeHead][Member per local rank][doorbells: a row of bits per local rank]
//   rank segment (one per rank):
//     [RankHead][1024 claim words][ConsumedWord per local rank][256 flags of slots]
//     [flag of puts per local rank][node segment][host cells][device slots][rings: one per local rank]
//
// Rings are the writer's: bytes for local rank 3 lie in ring 3 of the sender's segment. A ring has
// its place but no pages until its first message, when the writer reserves it and rings the
// reader's doorbell once; from then on the reader polls it. Likewise pools have no pages until
// their owner's first use.
#pragma once

#include "base/process_memory.hpp"
#include "transport/shm/ring.hpp"
#include "base/segment.hpp"
#include "transport/transport.hpp"

#include <algorithm>
#include <bit>

namespace gantry::transport::shm {

enum class MemberState : std::uint32_t { absent, here, left };

struct alignas(kLine) Member {
    std::uint32_t state = 0;  // MemberState; `here` is stored with release after the fields below
    SegmentName segment;
    // Where its pools, node segment, claim words and flags of slots are, if not there.
    SegmentName home;
    std::uint64_t start_time = 0;
    Probe probe;  // of whether others may read its memory
    // GPUs that it uses, at any time; the last place takes kEveryGpu when there are more.
    static constexpr std::uint64_t kEveryGpu = ~std::uint64_t{0};
    std::uint64_t gpus[16] = {};
    std::uint64_t host_rates = 0;  // SharedSegment::host_rates
};

struct alignas(kLine) NodeHead {
    std::uint32_t version = 0;
    std::uint32_t members = 0;
};

class NodeLayout {
  public:
    explicit NodeLayout(int members) : members_(static_cast<std::size_t>(members)) {}
    Bytes bytes() const { return doorbell_offset(members_); }
    Bytes member_offset(std::size_t member) const {
        return sizeof(NodeHead) + member * sizeof(Member);
    }
    std::size_t words_per_row() const { return round_up(divide_up(members_, 64), kLine / 8); }
    Bytes doorbell_offset(std::size_t member) const {
        return member_offset(members_) + member * words_per_row() * sizeof(std::uint64_t);
    }

  private:
    std::size_t members_;
};

struct alignas(kLine) RankHead {
    std::uint32_t version = 0;
    std::uint32_t unused = 0;
    Bytes control_bytes = 0;
    Bytes ring_bytes = 0;
    Bytes ring_offset = 0;
    Bytes flag_offset = 0;
    Bytes node_segment_offset = 0;
    Bytes pool_offset[2] = {};
    Bytes pool_bytes[2] = {};  // 0 until reserved; stored with release
};

// Of each ring, unless the user says. A few large messages must fit: in rings of 64 KiB windows of
// 32 KiB moved at a third of the rate, and 16 KiB took 1.4 times as long (two ranks, a Xeon beside an
// H200). All rings that a rank reads at a time should stay in its processor's cache.
inline Bytes usual_ring_bytes(int members) {
    constexpr Bytes kOfRank = 2 * kMiB, kSmallest = 64 * kKiB, kLargest = 256 * kKiB;
    const auto peers = static_cast<Bytes>(std::max(members - 1, 1));
    return std::clamp(std::bit_floor(kOfRank / peers), kSmallest, kLargest);
}

class RankLayout {
  public:
    // `ring`: 0, the usual size. `node segment`: 0, there is none.
    RankLayout(int members, Bytes ring, Bytes host_pool, Bytes device_pool,
               Bytes node_segment = kNodeSegmentBytes)
        : node_segment_bytes_(node_segment),
          members_(static_cast<std::size_t>(members)),
          ring_bytes_(
              std::bit_ceil(std::max(ring > 0 ? ring : usual_ring_bytes(members), page_bytes()))),
          pool_bytes_{round_up(host_pool, page_bytes()), round_up(device_pool, page_bytes())} {}

    static constexpr Bytes kClaimOffset = round_up(sizeof(RankHead), kLine);
    static constexpr Bytes kConsumedOffset =
        kClaimOffset + round_up(kClaimWords * sizeof(std::uint32_t), kLine);
    // On pages of their own, which devices write to.
    Bytes flag_offset() const {
        return round_up(kConsumedOffset + members_ * sizeof(ConsumedWord), page_bytes());
    }
    // Likewise.
    Bytes node_segment_offset() const {
        return round_up(flag_offset() + (kSlotFlags + members_) * sizeof(Flag), page_bytes());
    }

    // Everything before the pools, reserved at once.
    Bytes control_bytes() const {
        return round_up(node_segment_offset() + node_segment_bytes_, page_bytes());
    }
    // Pools start where a huge page may.
    Bytes pool_offset(Pool pool) const {
        const Bytes host = round_up(control_bytes(), kPoolAlignment);
        return pool == Pool::host_cells ? host : round_up(host + pool_bytes_[0], kPoolAlignment);
    }
    Bytes pool_bytes(Pool pool) const { return pool_bytes_[static_cast<std::size_t>(pool)]; }
    Bytes ring_bytes() const { return ring_bytes_; }
    Bytes ring_offset() const { return pool_offset(Pool::device_slots) + pool_bytes_[1]; }
    Bytes bytes() const { return ring_offset() + members_ * ring_bytes_; }

  private:
    static constexpr Bytes kPoolAlignment = 2 * kMiB;
    Bytes node_segment_bytes_;
    std::size_t members_;
    Bytes ring_bytes_;
    Bytes pool_bytes_[2];
};

}  // namespace gantry::transport::shm
