// SPDX-License-Identifier: BSD-3-Clause
#include "rma/node_memory.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace gantry::rma {
namespace {

constexpr const char* kWhat = "gantry-window";

Bytes pages(Bytes bytes) {
    return round_up(bytes, page_bytes());
}

// What lies before the errands.
Bytes lock_bytes(std::size_t ranks) {
    const Bytes numbers = ranks * (3 * ranks + 1) * sizeof(std::uint32_t);
    return round_up(ranks * sizeof(ControlBlock) + numbers + ranks * ranks, alignof(ErrandBox));
}

}  // namespace

NodeMemory::Parts NodeMemory::parts(const std::vector<Bytes>& sizes, bool adjoining,
                                    Bytes alignment) {
    Parts parts;
    parts.alignment = alignment;
    for (Bytes size : sizes) {
        parts.begin.push_back(parts.bytes);
        parts.bytes += adjoining ? size : round_up(size, alignment);
    }
    return parts;
}

Bytes NodeMemory::table_bytes(const Parts& parts) {
    const bool attaches = parts.attaches.regions > 0;
    return attaches ? parts.begin.size() * Attachments::bytes_of(parts.attaches) : 0;
}

// Attachments lie where memory would.
Bytes NodeMemory::memory_bytes(const Parts& parts) {
    return pages(std::max<Bytes>({parts.bytes, table_bytes(parts), 1}));
}

Bytes NodeMemory::control_bytes(const Parts& parts) {
    const std::size_t ranks = parts.begin.size();
    return pages(lock_bytes(ranks) + (parts.errands ? ranks * sizeof(ErrandBox) : 0));
}

Bytes NodeMemory::memory_offset(const Parts& parts) {
    return round_up(control_bytes(parts), parts.alignment);
}

void NodeMemory::lay_out(std::byte* begin, const Parts& parts) {
    parts_ = parts;
    controls_ = reinterpret_cast<ControlBlock*>(begin);
    const std::size_t ranks = parts.begin.size();
    places_ = reinterpret_cast<std::uint32_t*>(controls_ + ranks);
    posts_ = places_ + ranks * (ranks + 1);
    completes_ = posts_ + ranks * ranks;
    shares_ = reinterpret_cast<Share*>(completes_ + ranks * ranks);
    errands_ = parts.errands ? reinterpret_cast<ErrandBox*>(begin + lock_bytes(ranks)) : nullptr;
    memory_ = begin + memory_offset(parts);
}

Status NodeMemory::make_private(const Parts& parts) {
    const Bytes alignment = std::max(parts.alignment, page_bytes());
    const Bytes bytes = round_up(memory_offset(parts) + memory_bytes(parts), alignment);
    private_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, bytes)));
    if (private_ == nullptr)
        return failure(MPI_ERR_NO_MEM, "the system has no {} bytes for a window", bytes);
    lay_out(private_.get(), parts);
    new (controls_) ControlBlock;
    std::memset(places_, 0, waiting_places(0).size_bytes());
    *posts_ = *completes_ = 0;
    *shares_ = Share::none;
    return success();
}

Result<SegmentName> NodeMemory::make_shared(const Parts& parts) {
    const Bytes memory = memory_offset(parts);
    Result<Segment> made = Segment::create(kWhat, memory + memory_bytes(parts));
    GANTRY_TRY(made.status());
    segment_ = std::move(made.value());
    GANTRY_TRY(segment_.reserve(0, control_bytes(parts)));
    if (table_bytes(parts) > 0) GANTRY_TRY(segment_.reserve(memory, pages(table_bytes(parts))));
    // Pages of a new segment are zero, which is what free locks, empty queues and no attachments look like.
    return segment_.name();
}

Status NodeMemory::map_shared(const SegmentName& name, const Parts& parts, std::size_t self,
                              Bytes own_bytes) {
    if (!segment_) {
        Result<Segment> opened = Segment::open(kWhat, name);
        GANTRY_TRY(opened.status());
        segment_ = std::move(opened.value());
    }
    Result<SegmentMapping> mapped = segment_.map(0, segment_.bytes(), parts.alignment);
    GANTRY_TRY(mapped.status());
    mapping_ = std::move(mapped.value());
    lay_out(mapping_.address(), parts);
    // By its owner, so that the pages lie where the owner runs.
    if (own_bytes == 0) return success();
    Status reserved = segment_.reserve(memory_offset(parts) + parts.begin[self], own_bytes);
    if (reserved.ok()) return reserved;
    return failure(MPI_ERR_NO_MEM,
                   "the node has no {} bytes of shared memory left for a window ({})", own_bytes,
                   reserved.text());
}

}  // namespace gantry::rma
