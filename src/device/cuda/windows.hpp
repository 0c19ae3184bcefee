// SPDX-License-Identifier: BSD-3-Clause
//
// Windows: device memory of this process that is mapped for its processor (gdr_library.hpp), in
// parts of at most 2 MiB: a small allocation whole, of a large one what messages touch. Bounded in
// number and bytes, the one unused for longest is closed first.
//
// A window belongs to a buffer id, which the driver never gives twice. The program may free its
// memory at any time; the driver then takes the mapping away, and a load or store through it ends
// the process (SIGBUS). So a window is touched only for a message whose buffer has just been found
// to be that allocation: reads follow classification at once; before a write, which may come much
// later, the driver is asked again. Windows whose allocation is gone are dropped untouched at the
// next opening.
//
//   asked for --(small messages repaid it)--> open --(room needed, or the allocation is
//      |                                                gone)--> closed
//      '--(refused: pools, virtual memory, no BAR space)--> not asked for again
#pragma once

#include "device/cuda/gdr_library.hpp"
#include "device/device.hpp"
#include "device/pointer_cache.hpp"
#include "device/window_uses.hpp"

#include <list>

namespace gantry::device::cuda {

class Windows {
  public:
    struct Limits {
        std::size_t entries = 0;
        Bytes bytes = 0;
    };
    Windows(PointerQuery& query, Limits limits) : query_(query), limits_(limits) {}

    bool possible();
    bool has(const Location& location, const void* address, Bytes bytes) {
        return find(location, address, bytes) != windows_.end();
    }
    // Counts one small message; whether all of them repay a window.
    bool repays(const Location& location, const void* address, const GpuFacts& gpu) {
        return uses_.repays(part_of(location, address), gpu);
    }
    bool open(const Location& location, const void* address, Bytes bytes);

    Status read(const Location& location, const void* address, void* to, Bytes bytes);
    Status write(const Location& location, void* address, const void* from, Bytes bytes);

    void clear();
    void abandon();  // in a forked child
    std::size_t entries() const { return windows_.size(); }
    Bytes bytes() const { return bytes_; }

    static constexpr Bytes kPart = 2 * kMiB;
    // A window reaches so much into the next part: no message lies in two.
    static constexpr Bytes kLargest = 64 * kKiB;

  private:
    struct Window {
        WindowUses::Part part;
        std::uintptr_t begin = 0, end = 0;  // of the allocation, what may be touched
        GdrLibrary::Mapping mapping;
    };
    using Iterator = std::list<Window>::iterator;
    static WindowUses::Part part_of(const Location& location, const void* address);
    Iterator find(const Location& location, const void* address, Bytes bytes);
    void drop_freed();
    bool make_room(Bytes bytes);
    Iterator close(Iterator window);

    PointerQuery& query_;
    const Limits limits_;
    GdrLibrary library_;
    WindowUses uses_;
    std::list<Window> windows_;  // the most recently used first; searched linearly: few
    Bytes bytes_ = 0;
    bool said_refusal_ = false;
    bool said_absence_ = false;
};

}  // namespace gantry::device::cuda
