// SPDX-License-Identifier: BSD-3-Clause
//
// The few CUDA driver calls a benchmark needs, by dlopen: the program links nothing of CUDA and
// runs host to host without any driver. A refused call ends the job with the call and the driver's
// words.
#pragma once

#include "device/cuda/driver_abi.h"

#include <cstddef>
#include <string>
#include <vector>

namespace gantry::bench {

class Driver {
  public:
    // Opens the library and this rank's device, or ends the job saying why not.
    void start(int gpu);
    // Ranks take these devices in turn, or all that there are.
    void start_in_turn(std::vector<int> gpus, int rank);
    void stop();
    // Makes its context current in another thread of this rank.
    void use_here() const { check(cuCtxSetCurrent(context_), "cuCtxSetCurrent"); }
    bool started() const { return context_ != nullptr; }
    int gpu() const { return gpu_; }
    std::string gpu_name() const;
    // Number of devices without starting one; 0 and a reason when there is no driver.
    int count(std::string* why_none);

    void check(CUresult result, const char* call, std::size_t bytes = 0) const;

#define GANTRY_BENCH_CALL(symbol) PFN_##symbol symbol = nullptr;
#define GANTRY_BENCH_OPTIONAL(symbol) PFN_##symbol symbol = nullptr;
#include "bench/driver_calls.def"
#undef GANTRY_BENCH_CALL
#undef GANTRY_BENCH_OPTIONAL
    // Whether the driver has all that the optional calls are.
    bool has_floors() const;

  private:
    bool load(std::string* why_not);
    void* library_ = nullptr;
    CUcontext context_ = nullptr;
    CUdevice device_ = 0;
    int gpu_ = -1;
};

// One per process: a driver is one.
Driver& driver();

}  // namespace gantry::bench
