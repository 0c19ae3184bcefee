// SPDX-License-Identifier: BSD-3-Clause
#include "registry.hpp"

namespace simgpu {

Range* Registry::insert(Range range) {
    range.buffer_id = ++last_buffer_id_;
    return &ranges_.insert_or_assign(range.base, std::move(range)).first->second;
}

Range* Registry::find(Address address) {
    auto next = ranges_.upper_bound(address);
    if (next == ranges_.begin()) {
        return nullptr;
    }
    Range& range = std::prev(next)->second;
    return range.holds(address) ? &range : nullptr;
}

bool Registry::overlaps(Address address, std::size_t bytes) const {
    auto next = ranges_.upper_bound(address);
    if (next != ranges_.end() && next->first - address < bytes) {
        return true;
    }
    return next != ranges_.begin() && std::prev(next)->second.holds(address);
}

bool Registry::covers(Address address, std::size_t bytes) {
    const Range* range = find(address);
    if (range == nullptr || !range->accessible) {
        return false;
    }
    std::size_t here = range->base + range->bytes - address;
    while (here < bytes) {
        if (range->kind != MemoryKind::mapped) {
            return false;
        }
        range = find(range->base + range->bytes);
        if (range == nullptr || range->kind != MemoryKind::mapped || !range->accessible) {
            return false;
        }
        here += range->bytes;
    }
    return true;
}

}  // namespace simgpu
