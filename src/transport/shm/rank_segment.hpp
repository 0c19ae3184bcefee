// SPDX-License-Identifier: BSD-3-Clause
//
// The segment of one rank: ours, or a peer's as we have mapped it.
#pragma once

#include "transport/shm/layout.hpp"

namespace gantry::transport::shm {

class RankSegment {
  public:
    // Ours, with its control part reserved.
    static Result<RankSegment> create(const RankLayout& layout);
    static Result<RankSegment> open(const SegmentName& name);

    explicit operator bool() const { return static_cast<bool>(mapping_); }
    SegmentName name() const { return segment_.name(); }
    Bytes ring_bytes() const { return head().ring_bytes; }
    std::uint32_t* claim_words() const;
    Flag* flags() const;
    std::span<std::byte> node_segment() const;
    // How far `reader` has read the ring that the owner of this segment writes for it.
    ConsumedWord& consumed(int reader) const;
    // The ring for `reader`, mapped twice in a row. Its writer reserves it first.
    Status reserve_ring(int reader) const;
    Result<SegmentMapping> map_ring(int reader) const;

    // Pools are mapped at their first use: an address space limit that has no room for them hurts
    // only who needs them.
    Result<std::span<std::byte>> reserve_pool(Pool pool, Bytes bytes);  // the owner
    Result<std::span<std::byte>> pool(Pool pool);  // empty until the owner has reserved it

  private:
    RankHead& head() const { return *reinterpret_cast<RankHead*>(mapping_.address()); }
    Segment segment_;
    SegmentMapping mapping_;  // all before the pools
    SegmentMapping pool_mapping_[2];
};

}  // namespace gantry::transport::shm
