// SPDX-License-Identifier: BSD-3-Clause
#include "transport/registration_cache.hpp"

#include <mpi.h>

#include <algorithm>
#include <iterator>

namespace gantry::transport {
namespace {

constexpr std::size_t kRefusalsRemembered = 4096;

std::uintptr_t begin_of(const Extent& extent) {
    return reinterpret_cast<std::uintptr_t>(extent.address);
}
std::uintptr_t end_of(const Extent& extent) {
    return begin_of(extent) + extent.bytes;
}
bool covers(const Extent& wide, const Extent& part) {
    return begin_of(wide) <= begin_of(part) && end_of(part) <= end_of(wide);
}
// The same memory, as far as anybody can know from an address.
bool same_memory(const Extent& one, const Extent& other) {
    return one.place == other.place && one.allocation == other.allocation;
}

}  // namespace

RegistrationCache::~RegistrationCache() {
    for (const auto& [id, entry] : entries_)
        registrar_.unmap(id);
}

bool RegistrationCache::keeps(const Extent& extent) const {
    if (limits_.entries == 0) return false;
    return extent.place == MemoryPlace::device ? extent.allocation != 0
                                               : host_pages_ != HostPages::unnoticed;
}

Result<Region> RegistrationCache::take(const Extent& extent) {
    read_notes();
    Entry* entry = find(extent);
    if (entry != nullptr) {
        ++counts_.reused;
    } else {
        Result<Entry*> made = add(extent);
        if (!made.ok()) return made.status();
        entry = *made;
    }
    if (entry->users++ == 0) idle_.erase(entry->idle);
    return Region{entry->id, entry->extent.address, entry->extent.bytes};
}

void RegistrationCache::give(const Region& region) {
    const auto found = entries_.find(region.id);
    if (found == entries_.end() || found->second.users == 0) return;
    Entry& entry = found->second;
    if (--entry.users > 0) return;
    entry.idle = idle_.insert(idle_.end(), &entry);
    if (!entry.findable || !keeps(entry.extent)) return end(entry);
    make_room(0);
}

const Extent* RegistrationCache::in_use(std::uint64_t id) const {
    const auto found = entries_.find(id);
    return found == entries_.end() || found->second.users == 0 ? nullptr : &found->second.extent;
}

void RegistrationCache::read_notes() {
    const bool complete =
        notes_.take([this](std::uintptr_t begin, Bytes bytes) { forget_host(begin, bytes); });
    if (!complete) forget_host(0, UINTPTR_MAX);
}

void RegistrationCache::forget_host(std::uintptr_t begin, Bytes bytes) {
    if (host_pages_ == HostPages::any) return;
    each_overlapping(begin, bytes, [this](Entry& entry) {
        if (entry.extent.place == MemoryPlace::host) lose(entry);
    });
}

// `visit` may hide what it is shown.
template <class Visit>
void RegistrationCache::each_overlapping(std::uintptr_t begin, Bytes bytes, Visit&& visit) {
    auto at = by_address_.upper_bound(begin);
    if (at != by_address_.begin() && end_of(std::prev(at)->second->extent) > begin) --at;
    while (at != by_address_.end() && at->first < begin + bytes) {
        Entry& entry = *at->second;
        ++at;
        visit(entry);
    }
}

RegistrationCache::Entry* RegistrationCache::find(const Extent& extent) {
    const auto after = by_address_.upper_bound(begin_of(extent));
    if (after == by_address_.begin()) return nullptr;
    Entry* entry = std::prev(after)->second;
    const bool is_it = covers(entry->extent, extent) && same_memory(entry->extent, extent) &&
                       (extent.place == MemoryPlace::host || extent.allocation != 0);
    return is_it ? entry : nullptr;
}

// What is worth registering instead: the whole allocation, or the host ranges that it overlaps.
Extent RegistrationCache::widened(const Extent& extent) {
    Extent wide = extent;
    if (extent.place == MemoryPlace::device) {
        if (extent.allocation == 0 || extent.allocation_bytes == 0) return wide;
        wide.address = reinterpret_cast<void*>(extent.allocation_base);
        wide.bytes = extent.allocation_bytes;
        // A buffer may go on into a neighbouring mapping (virtual memory): then only itself is
        // sure.
        return covers(wide, extent) ? wide : extent;
    }
    each_overlapping(begin_of(extent), extent.bytes, [&wide](const Entry& entry) {
        if (entry.extent.place != MemoryPlace::host) return;
        const std::uintptr_t begin = std::min(begin_of(wide), begin_of(entry.extent));
        const std::uintptr_t end = std::max(end_of(wide), end_of(entry.extent));
        wide.address = reinterpret_cast<void*>(begin);
        wide.bytes = end - begin;
    });
    return wide;
}

void RegistrationCache::hide(Entry& entry) {
    if (entry.findable) by_address_.erase(begin_of(entry.extent));
    entry.findable = false;
    if (entry.users == 0) end(entry);
}

// Other memory may come to its address.
void RegistrationCache::lose(Entry& entry) {
    ++counts_.invalidated;
    if (entry.users > 0) registrar_.gone(entry.id);
    hide(entry);
}

// An idle one leaves.
void RegistrationCache::end(Entry& entry) {
    if (entry.findable) by_address_.erase(begin_of(entry.extent));
    idle_.erase(entry.idle);
    registrar_.unmap(entry.id);
    --counts_.live;
    counts_.live_bytes -= entry.extent.bytes;
    entries_.erase(entry.id);
}

bool RegistrationCache::evict_one() {
    if (idle_.empty()) return false;
    ++counts_.evicted;
    end(*idle_.front());
    return true;
}

// For `bytes` more, or (0) for what is there.
void RegistrationCache::make_room(Bytes bytes) {
    const std::size_t one = bytes > 0 ? 1 : 0;
    while (counts_.live + one > limits_.entries || counts_.live_bytes + bytes > limits_.bytes)
        if (!evict_one()) return;
}

Result<RegistrationCache::Entry*> RegistrationCache::add(const Extent& extent) {
    if (extent.allocation != 0 && refused_.contains(extent.allocation))
        return failure(MPI_ERR_UNSUPPORTED_OPERATION,
                       "the network refused to register this device allocation before");
    Extent wanted = keeps(extent) ? widened(extent) : extent;
    if (wanted.bytes > limits_.bytes) wanted = extent;
    // What is not this memory has gone: whoever registers may know it by its address alone.
    each_overlapping(begin_of(wanted), wanted.bytes, [this, &wanted](Entry& entry) {
        if (!same_memory(entry.extent, wanted)) lose(entry);
    });
    if (keeps(extent)) make_room(wanted.bytes);
    const std::uint64_t id = next_id_++;
    Status mapped = registrar_.map(id, wanted);
    if (!mapped.ok() && wanted.bytes != extent.bytes) {
        wanted = extent;
        mapped = registrar_.map(id, wanted);
    }
    // Pinned memory is limited: ours that nobody uses goes first.
    while (!mapped.ok() && extent.place == MemoryPlace::host && evict_one())
        mapped = registrar_.map(id, wanted);
    if (!mapped.ok()) {
        ++counts_.refused;
        if (refused_.size() >= kRefusalsRemembered) refused_.clear();
        if (extent.allocation != 0) refused_.insert(extent.allocation);
        return mapped;
    }
    // Whatever else could be found here is smaller.
    each_overlapping(begin_of(wanted), wanted.bytes, [this](Entry& entry) { hide(entry); });
    ++counts_.registered;
    ++counts_.live;
    counts_.live_bytes += wanted.bytes;
    if (wanted.place == MemoryPlace::host) notes_.watch(begin_of(wanted), wanted.bytes);
    Entry& entry = entries_.try_emplace(id).first->second;
    entry.extent = wanted;
    entry.id = id;
    entry.idle = idle_.insert(idle_.end(), &entry);
    by_address_.emplace(begin_of(wanted), &entry);
    return &entry;
}

}  // namespace gantry::transport
