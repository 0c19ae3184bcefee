// SPDX-License-Identifier: BSD-3-Clause
//
// Device memory as an OpenACC program has it: acc_malloc and acc_memcpy of GCC's run-time library, by dlopen,
// so that the benchmark needs no OpenACC compiler. The library shares the driver's context of this process.
#pragma once

#include "base/units.hpp"

#include <cstddef>
#include <string>

namespace gantry::bench {

class OpenAcc {
  public:
    // Opens the library and its device `gpu`, or ends the job saying why not. The driver has started.
    void start(int gpu);
    // Before the driver stops: the library would look for its context at exit.
    void stop();
    void* allocate(Bytes bytes);
    void release(void* memory) { free_(memory); }
    void to_device(void* to, const void* from, Bytes bytes) {
        to_device_(to, const_cast<void*>(from), bytes);
    }
    void from_device(void* to, const void* from, Bytes bytes) {
        from_device_(to, const_cast<void*>(from), bytes);
    }

  private:
    void* library_ = nullptr;
    void (*shutdown_)(int) = nullptr;
    void* (*malloc_)(std::size_t) = nullptr;
    void (*free_)(void*) = nullptr;
    void (*to_device_)(void*, void*, std::size_t) = nullptr;
    void (*from_device_)(void*, void*, std::size_t) = nullptr;
};

// One per process, as the library is.
OpenAcc& openacc();

}  // namespace gantry::bench
