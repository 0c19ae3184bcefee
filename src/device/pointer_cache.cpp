// SPDX-License-Identifier: BSD-3-Clause
#include "device/pointer_cache.hpp"

#include <utility>

namespace gantry::device {

namespace {

std::uintptr_t end_of(const Allocation& allocation) {
    return allocation.location.base + allocation.location.size;
}

const char* name(MemoryKind kind) {
    switch (kind) {
        case MemoryKind::host: return "host memory";
        case MemoryKind::pinned: return "pinned host memory";
        case MemoryKind::device: return "device memory";
        case MemoryKind::managed: return "managed memory";
    }
    return "memory";
}

}  // namespace

Result<Location> PointerCache::classify(const void* pointer, Bytes bytes) {
    if (surely_host(pointer, bytes)) return Location{};
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    if (address + bytes < address)
        return failure(MPI_ERR_BUFFER,
                       "a buffer of {} bytes at {:#x} goes beyond the end of the address space",
                       bytes, address);
    // A known allocation is confirmed before program data is looked at: the look costs 30 ns, and a
    // hit is nearly always right.
    if (find(address) == nullptr && host_.in_program_data(address, bytes)) return Location{};
    Result<const Allocation*> found = resolve(address, true);
    if (!found.ok()) return std::move(found).status();
    if (*found == nullptr) {
        GANTRY_TRY(check_host_extent(address, bytes));
        // A send that waited for the progress thread may come here after its memory has gone.
        if (query_.is_readable(address)) return Location{};
        return failure(MPI_ERR_BUFFER,
                       "a buffer of {} bytes at {:#x} is neither in device memory nor in memory "
                       "that can be read: it was freed, or its GPU's context was reset, before "
                       "the message was done with it",
                       bytes, address);
    }
    return check_extent(**found, address, bytes);
}

Result<const Allocation*> PointerCache::resolve(std::uintptr_t address, bool may_be_program_data) {
    if (const Allocation* hit = find(address)) {
        if (query_.buffer_id(address) == hit->location.buffer_id) return hit;
        forget(hit->location.base);
        if (may_be_program_data && host_.in_program_data(address, 1))
            return Result<const Allocation*>(nullptr);
    }
    Result<Allocation> described = query_.describe(address);
    if (!described.ok()) return std::move(described).status();
    if (described->location.kind == MemoryKind::host) return Result<const Allocation*>(nullptr);
    const Allocation* kept = remember(*described);
    if (kept->location.kind == MemoryKind::device) query_.first_use(*kept, address);
    return kept;
}

// A device buffer may go on into the next mapping of the same kind (virtual memory in several
// pieces); nothing else may follow.
Result<Location> PointerCache::check_extent(const Allocation& first, std::uintptr_t address,
                                            Bytes bytes) {
    Location location = first.location;
    std::uintptr_t reached = end_of(first);
    const std::uintptr_t end = address + bytes;
    // Only a part of the host memory is page-locked: the whole is treated as what its worst part
    // is.
    if (location.kind == MemoryKind::pinned) return reached >= end ? location : Location{};
    while (reached < end) {
        const bool virtual_memory =
            first.location.ipc != IpcKind::legacy && location.kind == MemoryKind::device;
        const Allocation* next = nullptr;
        if (virtual_memory) {
            Result<const Allocation*> found = resolve(reached, false);
            if (!found.ok()) return std::move(found).status();
            next = *found;
        }
        if (next == nullptr || next->location.kind != location.kind)
            return failure(MPI_ERR_BUFFER,
                           "a buffer of {} bytes at {:#x} leaves its allocation: {} of {} bytes at "
                           "{:#x} on GPU {} ends {} bytes before it",
                           bytes, address, name(location.kind), location.size, location.base,
                           location.gpu, end - reached);
        reached = end_of(*next);
        location.ipc = IpcKind::none;  // a handle names one of the mappings
    }
    return location;
}

// Host memory that runs into device memory which is known here; unknown device memory is not
// searched for (a query per page).
Status PointerCache::check_host_extent(std::uintptr_t address, Bytes bytes) {
    auto next = allocations_.lower_bound(address);
    if (next == allocations_.end() || next->first >= address + bytes) return success();
    const Location& location = next->second.location;
    if (location.kind != MemoryKind::device) return success();
    if (query_.buffer_id(location.base) != location.buffer_id) {
        forget(location.base);
        return success();
    }
    return failure(MPI_ERR_BUFFER,
                   "a buffer of {} bytes at {:#x} begins in host memory and runs into device "
                   "memory at {:#x} on GPU {}",
                   bytes, address, location.base, location.gpu);
}

const Allocation* PointerCache::known(const void* address) const {
    return find(reinterpret_cast<std::uintptr_t>(address));
}

const Allocation* PointerCache::find(std::uintptr_t address) const {
    for (const Allocation* recent : {last_, before_})
        if (recent != nullptr && recent->range().contains(address, 1)) return used(*recent);
    auto after = allocations_.upper_bound(address);
    if (after == allocations_.begin()) return nullptr;
    const Allocation& candidate = std::prev(after)->second;
    if (!candidate.range().contains(address, 1)) return nullptr;
    return used(candidate);
}

const Allocation* PointerCache::remember(const Allocation& allocation) {
    // Without an identity no later use could be confirmed.
    if (allocation.location.buffer_id == 0) {
        unnamed_ = allocation;
        return &unnamed_;
    }
    if (allocations_.size() >= kMaxAllocations) clear();
    // Whatever else was known in this range is stale: allocations do not overlap.
    forget_range(reinterpret_cast<const void*>(allocation.location.base), allocation.location.size);
    return used(allocations_[allocation.location.base] = allocation);
}

void PointerCache::forget(std::uintptr_t base) {
    forget_the_last();
    ++losses_;
    allocations_.erase(base);
}

void PointerCache::clear() {
    forget_the_last();
    ++losses_;
    allocations_.clear();
}

void PointerCache::forget_range(const void* pointer, Bytes bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(pointer);
    auto stale = allocations_.upper_bound(begin);
    if (stale != allocations_.begin() && end_of(std::prev(stale)->second) > begin) --stale;
    for (; stale != allocations_.end() && stale->first < begin + bytes; ++losses_) {
        forget_the_last();
        stale = allocations_.erase(stale);
    }
}

void PointerCache::forget_context(std::uintptr_t context) {
    forget_the_last();
    ++losses_;
    std::erase_if(allocations_,
                  [context](const auto& row) { return row.second.context == context; });
}

}  // namespace gantry::device
