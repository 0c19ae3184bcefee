// SPDX-License-Identifier: BSD-3-Clause
#include "rma/node_memory.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace gantry::rma {
namespace {

constexpr const char* kWhat = "gantry-window";

Bytes pages(Bytes bytes) {
    return round_up(bytes, transport::shm::page_bytes());
}

}  // namespace

NodeMemory::Parts NodeMemory::parts(const std::vector<Bytes>& sizes, bool adjoining,
                                    Bytes alignment) {
    Parts parts;
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

Bytes NodeMemory::control_bytes(std::size_t ranks) {
    return pages(ranks * sizeof(ControlBlock) + ranks * ranks);
}

void NodeMemory::lay_out(std::byte* begin, const Parts& parts) {
    parts_ = parts;
    controls_ = reinterpret_cast<ControlBlock*>(begin);
    shares_ = reinterpret_cast<std::uint8_t*>(controls_ + parts.begin.size());
    memory_ = begin + control_bytes(parts.begin.size());
}

Status NodeMemory::make_private(const Parts& parts) {
    const Bytes bytes = control_bytes(1) + memory_bytes(parts);
    private_.reset(
        static_cast<std::byte*>(std::aligned_alloc(transport::shm::page_bytes(), bytes)));
    if (private_ == nullptr)
        return failure(MPI_ERR_NO_MEM, "the system has no {} bytes for a window", bytes);
    lay_out(private_.get(), parts);
    new (controls_) ControlBlock;
    *shares_ = 0;
    return success();
}

Result<transport::shm::SegmentName> NodeMemory::make_shared(const Parts& parts) {
    const Bytes control = control_bytes(parts.begin.size());
    Result<transport::shm::Segment> made =
        transport::shm::Segment::create(kWhat, control + memory_bytes(parts));
    GANTRY_TRY(made.status());
    segment_ = std::move(made.value());
    GANTRY_TRY(segment_.reserve(0, control + pages(table_bytes(parts))));
    // Pages of a new segment are zero, which is what free locks and no attachments look like.
    return segment_.name();
}

Status NodeMemory::map_shared(const transport::shm::SegmentName& name, const Parts& parts,
                              std::size_t self, Bytes own_bytes) {
    if (!segment_) {
        Result<transport::shm::Segment> opened = transport::shm::Segment::open(kWhat, name);
        GANTRY_TRY(opened.status());
        segment_ = std::move(opened.value());
    }
    Result<transport::shm::Mapping> mapped = segment_.map(0, segment_.bytes());
    GANTRY_TRY(mapped.status());
    mapping_ = std::move(mapped.value());
    lay_out(mapping_.address(), parts);
    // By its owner, so that the pages lie where the owner runs.
    if (own_bytes == 0) return success();
    Status reserved =
        segment_.reserve(control_bytes(parts.begin.size()) + parts.begin[self], own_bytes);
    if (reserved.ok()) return reserved;
    return failure(MPI_ERR_NO_MEM,
                   "the node has no {} bytes of shared memory left for a window ({})", own_bytes,
                   reserved.text());
}

}  // namespace gantry::rma
