// SPDX-License-Identifier: BSD-3-Clause
//
// HostMemory: memory that is host memory for as long as it exists, so that no driver need ever be
// asked about it:
//
//   the calling thread's stack     from the current frame up to the stack's end
//   the brk heap                   from the program's first break up to the current one
//   program and library data       loaded segments, read again whenever a library came or went
//
// Memory from mmap is never here: nobody tells us when it is unmapped, and a driver may then place
// device memory at its address. (A page of the heap or of the data that the program registers with
// the driver still answers "host": slower, still right.)
#pragma once

#include "base/units.hpp"
#include "device/loaded_objects.hpp"

#include <cstdint>
#include <pthread.h>
#include <unistd.h>
#include <vector>

// glibc's own record of the current break. sbrk(0) would read the same, but UCX puts a hook into
// it that asks the kernel each time: 0.1 us for every send and every receive.
extern "C" void* __curbrk __attribute__((weak));

namespace gantry::device {

class HostMemory {
  public:
    // Costs a few loads; no system call after the first time on each thread.
    bool on_stack_or_heap(std::uintptr_t address, Bytes bytes) {
        // The current break is read each time: the heap can shrink, and what is beyond it may become
        // anything.
        const Range heap{heap_begin_, current_break()};
        return (heap_begin_ != 0 && heap.holds(address, bytes)) ||
               on_stack_or_new_heap(address, bytes);
    }
    // Costs about 30 ns.
    bool in_program_data(std::uintptr_t address, Bytes bytes);

  private:
    struct Range {
        std::uintptr_t begin = 0;
        std::uintptr_t end = 0;
        bool holds(std::uintptr_t address, Bytes bytes) const {
            return address >= begin && address < end && bytes <= end - address;
        }
    };
    struct Stack {
        pthread_t thread;
        Range range;
    };
    static std::uintptr_t current_break() {
        return reinterpret_cast<std::uintptr_t>(&__curbrk != nullptr ? __curbrk : sbrk(0));
    }
    // Also learns where the heap begins, the first time.
    bool on_stack_or_new_heap(std::uintptr_t address, Bytes bytes);
    Range stack_of_this_thread();
    static std::uintptr_t first_break();

    static constexpr std::size_t kStacks = 64;  // threads remembered; the oldest makes room
    std::vector<Stack> stacks_;
    std::size_t oldest_stack_ = 0;
    std::uintptr_t heap_begin_ = 0;  // not known yet
    std::vector<Range> segments_;    // sorted
    LoadedObjects seen_;
};

}  // namespace gantry::device
