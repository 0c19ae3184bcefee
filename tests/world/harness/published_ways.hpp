// SPDX-License-Identifier: BSD-3-Clause
//
// Three more published comparisons, in the world. Each is half a ping-pong of device memory.
//
//   vectors      4 MiB in rows apart from each other, between two nodes at C2050/QDR rates:
//                  strided copy    cudaMemcpy2D of all to the host, MPI_Send, and back
//                  by hand         the pipeline of the slides, block by block: cudaMemcpy2DAsync inside
//                                  the GPU, cudaMemcpyAsync to the host, MPI_Isend; best block
//                  Gantry          MPI_Send of an MPI_Type_vector
//   GPUDirect    messages between two nodes whose network cards reach device memory, which they read
//                at 1.0 and write at 5.2 GB/s (a Sandy Bridge), beside the same without
//   IPC          messages between two GPUs of a node that map each other's memory, beside the same
//                through shared memory of the host
#pragma once

#include "base/units.hpp"

#include <vector>

namespace gantry::world {

struct PublishedVectors {
    Bytes width = 0;  // of a row
    Nanoseconds strided_copy = 0, by_hand = 0, gantry = 0;
    Bytes block = 0;  // of the pipeline by hand
};
PublishedVectors measure_vectors(Bytes width);

struct TwoPaths {
    Bytes bytes = 0;
    Nanoseconds with = 0, without = 0;
};
std::vector<TwoPaths> measure_gpudirect();
std::vector<TwoPaths> measure_ipc();

}  // namespace gantry::world
