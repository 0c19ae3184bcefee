// SPDX-License-Identifier: BSD-3-Clause
//
// BarMappings: device memory of this process that is mapped for its processor (gdr_library.hpp), in
// parts of at most 2 MiB: a small allocation whole, of a large one what messages touch. Bounded in
// number and bytes, the one unused for longest is closed first.
//
// A BAR mapping belongs to a buffer id, which the driver never gives twice. The program may free its
// memory at any time; the driver then takes the mapping away, and a load or store through it ends
// the process (SIGBUS). So a mapping is touched only for a message whose buffer has just been found
// to be that allocation: reads follow classification at once; before a write, which may come much
// later, the driver is asked again. Mappings whose allocation is gone are dropped untouched at the
// next opening.
//
//   asked for --(small messages repaid it)--> open --(room needed, or the allocation is
//      |                                                gone)--> closed
//      '--(refused: pools, virtual memory, no BAR space)--> not asked for again
#pragma once

#include "device/cuda/gdr_library.hpp"
#include "device/device.hpp"
#include "device/bar_uses.hpp"
#include "device/pointer_cache.hpp"

#include <list>

namespace gantry::device::cuda {

class BarMappings {
  public:
    struct Limits {
        std::size_t entries = 0;
        Bytes bytes = 0;
    };
    BarMappings(PointerQuery& query, Limits limits) : query_(query), limits_(limits) {}

    bool possible();
    bool has(std::uint64_t buffer_id, const void* address, Bytes bytes) {
        return find(buffer_id, address, bytes) != mappings_.end();
    }
    // Counts one small message; whether all of them repay a mapping.
    bool repays(const Location& location, const void* address, const GpuFacts& gpu) {
        return uses_.repays(part_of(location, address), gpu);
    }
    bool open(const Location& location, const void* address, Bytes bytes);

    // Out of device memory or into it.
    Status copy(const Copy& copy);

    void clear();
    void abandon();  // in a forked child
    std::size_t entries() const { return mappings_.size(); }
    Bytes bytes() const { return bytes_; }

    static constexpr Bytes kPart = 2 * kMiB;
    // A mapping reaches so much into the next part: no message lies in two.
    static constexpr Bytes kLargest = 64 * kKiB;

  private:
    struct Mapped {
        BarUses::Part part;
        std::uintptr_t begin = 0, end = 0;  // of the allocation, what may be touched
        GdrLibrary::Mapping mapping;
    };
    using Iterator = std::list<Mapped>::iterator;
    static BarUses::Part part_of(const Location& location, const void* address);
    Iterator find(std::uint64_t buffer_id, const void* address, Bytes bytes);
    void drop_freed();
    bool make_room(Bytes bytes);
    Iterator close(Iterator mapped);

    PointerQuery& query_;
    const Limits limits_;
    GdrLibrary library_;
    BarUses uses_;
    std::list<Mapped> mappings_;  // the most recently used first; searched linearly: few
    Bytes bytes_ = 0;
    bool said_refusal_ = false;
    bool said_absence_ = false;
};

}  // namespace gantry::device::cuda
