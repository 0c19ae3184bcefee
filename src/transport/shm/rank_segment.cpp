// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/rank_segment.hpp"

#include "transport/wire_version.hpp"

#include <sys/mman.h>

#include <new>

namespace gantry::transport::shm {
namespace {

constexpr const char* kWhat = "gantry-rank";

}  // namespace

Result<RankSegment> RankSegment::create(const RankLayout& layout) {
    Result<Segment> segment = Segment::create(kWhat, layout.bytes());
    GANTRY_TRY(segment.status());
    GANTRY_TRY(segment->reserve(0, layout.control_bytes()));
    Result<SegmentMapping> mapping = segment->map(0, layout.control_bytes());
    GANTRY_TRY(mapping.status());
    RankSegment made;
    made.segment_ = std::move(segment.value());
    made.mapping_ = std::move(mapping.value());
    auto* head = new (made.mapping_.address()) RankHead;
    head->version = kWireVersion;
    head->control_bytes = layout.control_bytes();
    head->ring_bytes = layout.ring_bytes();
    head->ring_offset = layout.ring_offset();
    head->flag_offset = layout.flag_offset();
    head->node_segment_offset = layout.node_segment_offset();
    for (Pool pool : {Pool::host_cells, Pool::device_slots})
        head->pool_offset[static_cast<std::size_t>(pool)] = layout.pool_offset(pool);
    return made;
}

Result<RankSegment> RankSegment::open(const SegmentName& name) {
    Result<Segment> segment = Segment::open(kWhat, name);
    GANTRY_TRY(segment.status());
    Result<SegmentMapping> head = segment->map(0, page_bytes());
    GANTRY_TRY(head.status());
    const auto* there = reinterpret_cast<const RankHead*>(head->address());
    if (there->version != kWireVersion)
        return failure(MPI_ERR_OTHER,
                       "shm: process {} speaks version {} of Gantry's wire and this rank version "
                       "{}: all ranks must load the same Gantry library",
                       name.process, there->version, kWireVersion);
    const Bytes control = there->control_bytes;
    Result<SegmentMapping> mapping = segment->map(0, control);
    GANTRY_TRY(mapping.status());
    RankSegment opened;
    opened.segment_ = std::move(segment.value());
    opened.mapping_ = std::move(mapping.value());
    return opened;
}

std::uint32_t* RankSegment::claim_words() const {
    return reinterpret_cast<std::uint32_t*>(mapping_.address() + RankLayout::kClaimOffset);
}

Flag* RankSegment::flags() const {
    return reinterpret_cast<Flag*>(mapping_.address() + head().flag_offset);
}

std::span<std::byte> RankSegment::node_segment() const {
    return {mapping_.address() + head().node_segment_offset, kNodeSegmentBytes};
}

ConsumedWord& RankSegment::consumed(int reader) const {
    return reinterpret_cast<ConsumedWord*>(mapping_.address() +
                                           RankLayout::kConsumedOffset)[reader];
}

Status RankSegment::reserve_ring(int reader) const {
    return segment_.reserve(head().ring_offset + static_cast<Bytes>(reader) * head().ring_bytes,
                            head().ring_bytes);
}

Result<SegmentMapping> RankSegment::map_ring(int reader) const {
    return segment_.map_twice(head().ring_offset + static_cast<Bytes>(reader) * head().ring_bytes,
                              head().ring_bytes);
}

Result<std::span<std::byte>> RankSegment::reserve_pool(Pool which, Bytes bytes) {
    const auto index = static_cast<std::size_t>(which);
    if (!pool_mapping_[index]) {
        GANTRY_TRY(segment_.reserve(head().pool_offset[index], bytes));
        // Pairs with the acquire in pool(): the pages are there before a peer touches them.
        std::atomic_ref<Bytes>(head().pool_bytes[index]).store(bytes, std::memory_order_release);
    }
    return pool(which);
}

Result<std::span<std::byte>> RankSegment::pool(Pool which) {
    const auto index = static_cast<std::size_t>(which);
    SegmentMapping& mapping = pool_mapping_[index];
    if (!mapping) {
        // Pairs with the release in reserve_pool.
        const Bytes bytes =
            std::atomic_ref<Bytes>(head().pool_bytes[index]).load(std::memory_order_acquire);
        if (bytes == 0) return std::span<std::byte>();
        Result<SegmentMapping> mapped = segment_.map(head().pool_offset[index], bytes);
        GANTRY_TRY(mapped.status());
        mapping = std::move(mapped.value());
        // Messages in flight say nothing in a core dump, and would make it large.
        madvise(mapping.address(), bytes, MADV_DONTDUMP);
    }
    return std::span<std::byte>(mapping.address(), mapping.bytes());
}

}  // namespace gantry::transport::shm
