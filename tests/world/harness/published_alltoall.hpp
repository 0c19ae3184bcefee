// SPDX-License-Identifier: BSD-3-Clause
//
// The published all-to-all of the original system (its dynamic staging), measured again in the world:
// 8 ranks on 8 nodes at C2050/QDR rates, every rank has a block of device memory for every other.
//
//   user staging    cudaMemcpy of all blocks to the host, MPI_Alltoall there (by the algorithm that is
//                   fastest there), cudaMemcpy of all blocks back: what a program did without a library
//                   that takes device memory
//   messages        one partner after the other, each block a device message of its own, staged in
//                   units of 256 KiB as the original system did by default
//   messages, own   the same with the pieces that Gantry chooses for a device message
//   Gantry          MPI_Alltoall on device memory
//   ideal           the bytes of one rank at the rate of the slowest stage, nothing else
#pragma once

#include "base/units.hpp"

namespace gantry::world {

struct PublishedAlltoall {
    Bytes block = 0;  // of one rank for one other
    Nanoseconds user_staging = 0, messages = 0, own_messages = 0, gantry = 0;
    Nanoseconds host_to_host = 0;  // the floor: the same between host buffers
    Nanoseconds ideal = 0;

    // How much lower Gantry is, of 1.
    double below(Nanoseconds baseline) const {
        return 1 - static_cast<double>(gantry) / static_cast<double>(baseline);
    }
};

inline constexpr int kPublishedRanks = 8;
inline constexpr Bytes kPublishedBlock = 256 * kKiB;

PublishedAlltoall measure_alltoall(Bytes block, int ranks = kPublishedRanks);

}  // namespace gantry::world
