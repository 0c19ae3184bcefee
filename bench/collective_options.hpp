// SPDX-License-Identifier: BSD-3-Clause
//
// What the user asked about a collective operation; the same on all ranks.
#pragma once

#include "element.hpp"
#include "options.hpp"

#include <string>
#include <vector>

namespace gantry::bench {

enum class Form { blocking, nonblocking, persistent };

struct CollectiveOptions {
    std::string operation;
    Placement placement = Placement::device;
    Form form = Form::blocking;
    Element element = Element::int32;
    Combination op = Combination::sum;  // of reductions
    std::string numbers;                // both in words
    std::vector<Bytes> sizes;
    std::vector<int> gpus;  // of the ranks, in turn
    int samples = 0;        // of each size; 0: by size
    bool validate = true, json = false, overlap = false, floor = false, nccl = false;
    bool staged = false, messages = false;  // baselines beside the library
};

// Between MPI_Init and MPI_Finalize. Ends the job itself for --help and mistakes.
CollectiveOptions parse_collective(int argc, char** argv);

}  // namespace gantry::bench
