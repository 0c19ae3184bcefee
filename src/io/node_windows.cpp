// SPDX-License-Identifier: BSD-3-Clause
#include "io/node_windows.hpp"

#include <algorithm>
#include <new>

namespace gantry::io {
namespace {

constexpr const char* kWhat = "gantry-file-windows";
// Of each rank: those of a call, and of one that is in flight beside it.
constexpr std::ptrdiff_t kMostMapped = 2;

}  // namespace

Result<std::unique_ptr<NodeWindows::Own>> NodeWindows::take(Bytes bytes) {
    if (spare_ != nullptr && spare_->name.bytes >= bytes) return std::move(spare_);
    spare_.reset();
    std::unique_ptr<Own> own(new (std::nothrow) Own);
    if (own == nullptr) return failure(MPI_ERR_NO_MEM, "out of memory for windows of a file");
    Result<gantry::Segment> made = gantry::Segment::create(kWhat, bytes);
    GANTRY_TRY(made.status());
    own->segment = std::move(*made);
    GANTRY_TRY(own->segment.reserve(0, bytes));
    Result<SegmentMapping> mapped = own->segment.map(0, bytes);
    GANTRY_TRY(mapped.status());
    own->mapping = std::move(*mapped);
    own->name = {own->segment.name(), ++last_number_, bytes};
    return own;
}

Result<std::shared_ptr<const SegmentMapping>> NodeWindows::map(int rank,
                                                               const NodeWindowsName& name) {
    for (const Mapped& each : mapped_)
        if (each.rank == rank && each.number == name.number) return each.mapping;
    Result<gantry::Segment> opened = gantry::Segment::open(kWhat, name.segment);
    GANTRY_TRY(opened.status());
    Result<SegmentMapping> mapped = opened->map(0, name.bytes);
    GANTRY_TRY(mapped.status());
    if (std::ranges::count(mapped_, rank, &Mapped::rank) >= kMostMapped)
        mapped_.erase(std::ranges::find(mapped_, rank, &Mapped::rank));
    mapped_.push_back(
        {rank, name.number, std::make_shared<const SegmentMapping>(std::move(*mapped))});
    return mapped_.back().mapping;
}

}  // namespace gantry::io
