// SPDX-License-Identifier: BSD-3-Clause
// Every range of memory the driver knows: what a pointer belongs to, and whether [p, p + n) may be
// touched. Guarded by the driver's lock.
#pragma once

#include <cstdint>
#include <map>

#include "arena.hpp"
#include "objects.hpp"

namespace simgpu {

enum class MemoryKind { device, imported, mapped, pooled, pinned, registered, managed };

struct Generic;                                 // physical memory of cuMemCreate
unsigned handle_types(const Generic& generic);  // that it was made for (api_vmm.cpp)

struct Range {
    Address base = 0;
    std::size_t bytes = 0;
    MemoryKind kind = MemoryKind::device;
    Device* device = nullptr;
    Context* context = nullptr;  // null for mapped and pooled memory, as in the driver
    std::uint64_t buffer_id = 0;
    bool sync_memops = false;
    bool exported = false;  // another process may map it
    unsigned host_flags = 0;
    Address block = 0;  // what was taken from the arena: base lies inside
    std::size_t block_bytes = 0;
    Slice slice;
    Pool* pool = nullptr;
    Generic* generic = nullptr;
    bool accessible = true;  // mapped memory before cuMemSetAccess is not
    int opened = 0;          // imported memory: open calls not yet closed
    std::uint64_t import_key[3] = {};

    bool on_device() const { return kind <= MemoryKind::pooled; }
    bool holds(Address address) const { return address - base < bytes; }
};

class Registry {
  public:
    Range* insert(Range range);
    void erase(Address base) { ranges_.erase(base); }
    Range* find(Address address);
    // Does this overlap anything known?
    bool overlaps(Address address, std::size_t bytes) const;
    // [address, address + bytes) lies in one range, or in adjacent accessible ranges of mapped
    // memory.
    bool covers(Address address, std::size_t bytes);
    std::map<Address, Range>& all() { return ranges_; }
    const std::map<Address, Range>& all() const { return ranges_; }

  private:
    std::map<Address, Range> ranges_;
    std::uint64_t last_buffer_id_ = 0;
};

}  // namespace simgpu
