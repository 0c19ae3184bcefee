// SPDX-License-Identifier: BSD-3-Clause
//
// What the user asked gantry-bench for; the same on both ranks.
#pragma once

#include "base/units.hpp"

#include <string>
#include <vector>

namespace gantry::bench {

enum class Benchmark { latency, bw, bibw, demo };

// Where a rank's message buffers are.
enum class Placement : char { device = 'D', host = 'H', managed = 'M', pinned = 'P' };

struct Options {
    Benchmark benchmark = Benchmark::latency;
    Placement placement[2] = {Placement::device, Placement::device};
    Bytes smallest = 1, largest = 4 * kMiB;
    int iterations = 0;     // samples per size; 0: by size
    int window = 0;         // messages in flight of bw and bibw; 0: by size
    std::vector<int> gpus;  // of rank 0 and 1; empty: one each if there are two
    bool validate = true;
    bool staged = false, pipelined = false;  // baselines beside the library
    bool library =
        true;  // false: only the baselines (an MPI that knows no device memory would crash)
    bool json = false;
};

const char* name(Benchmark benchmark);
// Ends the program itself for --help and mistakes (told by `talk` only, so that two ranks do not
// say it twice).
Options parse(int argc, char** argv, bool talk);
// The command line that would run one size again.
std::string command_for(const Options& options, Bytes bytes);

}  // namespace gantry::bench
