// SPDX-License-Identifier: BSD-3-Clause
//
// What the user asked about files; the same on all ranks.
#pragma once

#include "file_part.hpp"
#include "options.hpp"

namespace gantry::bench {

struct IoOptions {
    FilePattern pattern = FilePattern::contiguous;
    Placement placement = Placement::device;
    std::vector<Bytes> sizes;         // bytes a rank, about
    Bytes call = kMiB;                // of contiguous: bytes of one call
    Bytes block = 4 * kKiB;           // of strided
    bool together = false;            // by collective calls
    std::string folder = "/dev/shm";  // where the file is
    std::vector<int> gpus;            // of the ranks, in turn
    int samples = 0;                  // of each size; 0: by size
    bool validate = true, json = false, floor = false;
};

// Between MPI_Init and MPI_Finalize. Ends the job itself for --help and mistakes.
IoOptions parse_io(int argc, char** argv);

}  // namespace gantry::bench
