// SPDX-License-Identifier: BSD-3-Clause
//
// The published one-sided figures of the original system, measured again in the world.
//
//   between nodes    4 MiB from device to device at C2050/QDR rates, between two fences: MPI_Put and
//                    MPI_Get on device memory, beside cudaMemcpy of all to the host, the same on
//                    host windows, and cudaMemcpy of all to the device
//   inside a node    between two GPUs that map each other's memory: MPI_Put and MPI_Get with a flush
//                    beside a message, one way
#pragma once

#include "base/units.hpp"

#include <vector>

namespace gantry::world {

struct PublishedWindows {
    Nanoseconds put = 0, copy_and_put = 0;
    Nanoseconds get = 0, copy_and_get = 0;
};
PublishedWindows measure_windows();

struct OneSided {
    Bytes bytes = 0;
    Nanoseconds put = 0, get = 0, message = 0;
};
std::vector<OneSided> measure_one_sided();

}  // namespace gantry::world
