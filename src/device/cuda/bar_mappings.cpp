// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/bar_mappings.hpp"

#include "base/log.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gantry::device::cuda {
namespace {

std::uintptr_t value_of(const void* address) {
    return reinterpret_cast<std::uintptr_t>(address);
}

Status no_mapping(const void* address, Bytes bytes) {
    return failure(MPI_ERR_UNSUPPORTED_OPERATION, "no BAR mapping of {} bytes at {}", bytes,
                   fmt::ptr(address));
}

}  // namespace

bool BarMappings::possible() {
    if (library_.ready()) return true;
    if (!std::exchange(said_absence_, true))
        log::info("cuda: no BAR mappings of device memory (GDRCopy): {}", library_.refusal());
    return false;
}

BarUses::Part BarMappings::part_of(const Location& location, const void* address) {
    return {location.buffer_id, (value_of(address) - location.base) / kPart};
}

BarMappings::Iterator BarMappings::find(std::uint64_t buffer_id, const void* address, Bytes bytes) {
    const std::uintptr_t begin = value_of(address);
    const auto found = std::find_if(mappings_.begin(), mappings_.end(), [&](const Mapped& each) {
        return each.part.buffer_id == buffer_id && begin >= each.begin && begin < each.end &&
               bytes <= each.end - begin;
    });
    if (found != mappings_.end() && found != mappings_.begin())
        mappings_.splice(mappings_.begin(), mappings_, found);
    return found;
}

bool BarMappings::open(const Location& location, const void* address, Bytes bytes) {
    if (!possible() || bytes > kLargest) return false;
    drop_freed();
    const BarUses::Part part = part_of(location, address);
    const std::uintptr_t limit = location.base + location.size;
    Mapped mapped;
    mapped.part = part;
    mapped.begin = location.base + part.number * kPart;
    mapped.end = std::min(limit, mapped.begin + kPart + kLargest);
    const std::uintptr_t first_page = mapped.begin / GdrLibrary::kPage * GdrLibrary::kPage;
    const std::uintptr_t last_page = round_up(mapped.end, GdrLibrary::kPage);
    if (!make_room(last_page - first_page)) {
        uses_.refuse(part);
        return false;
    }
    Result<GdrLibrary::Mapping> mapping = library_.map(first_page, last_page - first_page);
    if (!mapping.ok()) {
        uses_.refuse(part);
        if (!std::exchange(said_refusal_, true))
            log::info(
                "cuda: a BAR mapping of device memory was refused, copies stay with the copy "
                "engines: {}",
                mapping.status().text());
        return false;
    }
    uses_.forget(part);
    mapped.mapping = *mapping;
    bytes_ += mapped.mapping.bytes;
    mappings_.push_front(mapped);
    log::debug("cuda: BAR mapping of {} bytes of device memory at {:#x}", mapped.end - mapped.begin,
               mapped.begin);
    return true;
}

// Each is asked about, which costs a tenth of a microsecond; an opening costs a thousand times
// that.
void BarMappings::drop_freed() {
    for (auto mapped = mappings_.begin(); mapped != mappings_.end();)
        mapped = query_.buffer_id(mapped->begin) == mapped->part.buffer_id ? std::next(mapped)
                                                                           : close(mapped);
}

bool BarMappings::make_room(Bytes bytes) {
    if (limits_.entries == 0 || bytes > limits_.bytes) return false;
    while (mappings_.size() >= limits_.entries || bytes_ + bytes > limits_.bytes)
        close(std::prev(mappings_.end()));
    return true;
}

BarMappings::Iterator BarMappings::close(Iterator mapped) {
    library_.unmap(mapped->mapping);
    bytes_ -= mapped->mapping.bytes;
    return mappings_.erase(mapped);
}

Status BarMappings::copy(const Copy& copy) {
    Iterator mapped = find(copy.allocation, copy.source, copy.bytes);
    if (mapped != mappings_.end())
        return library_.read(mapped->mapping, value_of(copy.source), copy.destination, copy.bytes);
    const std::uintptr_t to = value_of(copy.destination);
    mapped = find(copy.allocation, copy.destination, copy.bytes);
    if (mapped == mappings_.end()) return no_mapping(copy.destination, copy.bytes);
    if (query_.buffer_id(to) != copy.allocation) {
        close(mapped);
        return no_mapping(copy.destination, copy.bytes);
    }
    return library_.write(mapped->mapping, to, copy.source, copy.bytes);
}

void BarMappings::clear() {
    for (auto mapped = mappings_.begin(); mapped != mappings_.end();)
        mapped = close(mapped);
    library_.close();
}

void BarMappings::abandon() {
    mappings_.clear();
    bytes_ = 0;
    library_.abandon();
}

}  // namespace gantry::device::cuda
