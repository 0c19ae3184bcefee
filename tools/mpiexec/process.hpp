// SPDX-License-Identifier: BSD-3-Clause
//
// Starting one rank. Each rank leads its own process group, so that what it starts can be ended
// with it, and the kernel ends it when mpiexec dies. It inherits one descriptor beyond its standard
// streams: its end of the PMI socket.
#pragma once

#include "binding.hpp"
#include "options.hpp"

#include <sys/resource.h>
#include <sys/types.h>

#include <string>

namespace gantry::mpiexec {

enum class Input { inherited, pipe, nothing };

// Where a rank writes instead of to mpiexec.
struct OutputFile {
    std::string path;    // empty: to mpiexec
    bool fresh = false;  // the first that writes there: what was in it goes
};

struct Start {
    const App* app = nullptr;
    const Variables* variables_for_all = nullptr;
    int rank = 0;
    int size = 0;
    Input input = Input::nothing;
    rlimit descriptors{};   // what mpiexec was given; it raises its own
    Processors processors;  // empty: not bound
    std::string gpus{};     // CUDA_VISIBLE_DEVICES; empty: as it is
    OutputFile output{}, errors{};
    bool spawned = false;  // by ranks of another job
    std::string path{};    // where its program is looked for instead of PATH; empty: there
};

// mpiexec's ends of the rank's streams; -1 where there is none.
struct Process {
    pid_t pid = -1;
    int pmi = -1;
    int input = -1;
    int output = -1;
    int errors = -1;
};

struct Started {
    Process process;
    std::string failure;  // empty: it runs
};

Started start(const Start& what);

}  // namespace gantry::mpiexec
