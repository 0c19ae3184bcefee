// SPDX-License-Identifier: BSD-3-Clause
//
// What copies one by one (streams.hpp) and copies in one launch (fused.hpp) have in common.
#pragma once

#include "base/clock.hpp"
#include "base/units.hpp"
#include "device/cuda/driver.hpp"
#include "device/device.hpp"

#include <fmt/format.h>

#include <string>

namespace gantry::device::cuda {

// A flag that does not show for a millisecond: then the driver is asked what became of the stream.
class Doubt {
  public:
    // Something else is looked at from now on.
    void reset() { *this = {}; }
    // It was looked at again, in vain: whether to ask now.
    bool is_due() {
        if (++looks_ % kLooksBetweenClocks != 0) return false;
        const Nanoseconds now = SteadyClock{}.now();
        if (next_ == 0) next_ = now + kPatience;
        if (now < next_) return false;
        next_ = now + kPatience;
        return true;
    }

  private:
    static constexpr Nanoseconds kPatience = kMillisecond;
    static constexpr unsigned kLooksBetweenClocks = 64;
    unsigned looks_ = 0;
    Nanoseconds next_ = 0;
};

// How copies may be made: GANTRY_KERNELS, GANTRY_FLAGS, GANTRY_IDLE_TIMEOUT.
struct CopySettings {
    bool kernels = true;
    bool flags = true;
    Nanoseconds idle_timeout = 0;
    // An item must be on its way so long before a persistent kernel gives up. Below 0, for tests:
    // so much later it is still put, and comes too late.
    Nanoseconds resident_margin = 4 * kMicrosecond;
    const Neighbours* neighbours = nullptr;  // null: nobody is known
    Device::Resident* resident = nullptr;    // what kernels that stay do is counted there, too
};

inline CUdeviceptr device_address(const void* pointer) {
    return reinterpret_cast<CUdeviceptr>(pointer);
}

// For errors: "of 8 bytes from 0x... to 0x... on GPU 0".
inline std::string describe(const Copy& copy) {
    return fmt::format("of {} bytes from {} to {} on GPU {}", copy.bytes, fmt::ptr(copy.source),
                       fmt::ptr(copy.destination), copy.gpu);
}

inline Status context_destroyed(const Copy& copy) {
    return failure(MPI_ERR_OTHER, "the context of GPU {} was destroyed by the program: a copy {}",
                   copy.gpu, describe(copy));
}

}  // namespace gantry::device::cuda
