// SPDX-License-Identifier: BSD-3-Clause
//
// What copies one by one (streams.hpp) and copies in one launch (fused.hpp) have in common.
#pragma once

#include "base/units.hpp"
#include "device/cuda/driver.hpp"
#include "device/device.hpp"

#include <fmt/format.h>

#include <string>

namespace gantry::device::cuda {

// A flag that does not show for so long: ask the driver what became of the stream.
inline constexpr Nanoseconds kDoubt = kMillisecond;
inline constexpr unsigned kLooksBetweenClocks = 64;

// How copies may be made: GANTRY_KERNELS, GANTRY_FLAGS, GANTRY_LINGER.
struct CopySettings {
    bool kernels = true;
    bool flags = true;
    Nanoseconds linger = 0;
    // An item must be on its way so long before a kernel that stays gives up. Below 0, for tests:
    // so much later it is still put, and comes too late.
    Nanoseconds resident_margin = 4 * kMicrosecond;
    const Neighbours* neighbours = nullptr;  // null: nobody is known
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
