// SPDX-License-Identifier: BSD-3-Clause
//
// Opens the CUDA driver for a program that links nothing of CUDA: the applications and gantry-bench.
#pragma once

#include <span>
#include <string>

namespace gantry::apps {

struct DriverCall {
    const char* name;  // the exact symbol
    void** function;   // where its address goes
    bool optional = false;
};

// The library of GANTRY_CUDA_LIBRARY, or the system's. Null, and why: there is none, a call that is not optional
// is missing, or cuInit refuses.
void* open_cuda_library(std::span<const DriverCall> calls, std::string* why_not);

}  // namespace gantry::apps
