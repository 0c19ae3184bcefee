// SPDX-License-Identifier: BSD-3-Clause
//
// The published latency table of the original system, measured again in the world: 4 MiB from
// device to device between two nodes at C2050/QDR rates. Half of a ping-pong on the virtual clock,
// so every figure is exact and repeats.
//
//   copy and send   cudaMemcpy to the host, MPI_Send, MPI_Recv, cudaMemcpy to the device: each for
//                   the whole message
//   user pipeline   cudaMemcpyAsync and MPI_Isend per block, all receives posted ahead; the best of
//                   all block sizes
//   slide's loop    the loop of the original slides: one blocking send per block of a fixed size,
//                   so each block pays its own handshake
//   Gantry          MPI_Send and MPI_Recv on device memory
//   ideal           the bytes at the rate of the slowest stage, nothing else
#pragma once

#include "base/units.hpp"

#include <string>
#include <vector>

namespace gantry::world {

inline constexpr Bytes kPublishedBytes = 4 * kMiB;

// GPUDirect of 2011: driver and adapter share one pinned buffer. Without it, every byte is copied
// once more by the host on each side, in pieces, beside the wire.
enum class SharedPinned : std::uint8_t { with, without };

struct BlockTime {
    Bytes block;
    Nanoseconds time;
};

struct PublishedTable {
    Nanoseconds copy_and_send = 0;
    Nanoseconds host_to_host = 0;          // the floor: the same message between host buffers
    std::vector<BlockTime> user_pipeline;  // every block size tried
    std::vector<BlockTime> slides_loop;
    Nanoseconds gantry = 0;
    Nanoseconds ideal = 0;
    // The same on a network whose control messages wait behind all queued bulk: what separate queue
    // pairs are worth. No claim rests on it.
    Nanoseconds gantry_one_queue = 0;
    Nanoseconds user_one_queue = 0;  // at the best block above
    std::string gantry_path;         // what the planner chose

    BlockTime best_user() const;
    // How much lower `time` is than `baseline`, of 1.
    static double gain(Nanoseconds time, Nanoseconds baseline);
    double ideal_gain() const { return gain(ideal, copy_and_send); }
};

PublishedTable measure_published(SharedPinned shared_pinned);

// The same between other kinds of memory: rank 0's and rank 1's, there and back. Shared pinned.
struct PlacedTimes {
    std::string placement;  // "D-H": device memory on rank 0, host memory on rank 1
    Nanoseconds copy_and_send = 0;
    BlockTime user{0, 0};
    Nanoseconds gantry = 0;
};
std::vector<PlacedTimes> measure_placements();

}  // namespace gantry::world
