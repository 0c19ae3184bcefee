// SPDX-License-Identifier: BSD-3-Clause
// What every entry point does first: count itself, hide itself from the race detector, refuse when
// the driver is not usable (not initialised, forked, torn down, called from a callback) or when a
// fault is injected; and last: cost its caller the time such a call costs on the described machine.
#pragma once

#include "device/cuda/driver_abi.h"
#include "driver.hpp"
#include "entry_id.hpp"
#include "sanitizer.hpp"

#define SIMGPU_EXPORT extern "C" __attribute__((visibility("default")))

#define GANTRY_CUDA_FUNCTION(symbol, base, version, twin, args) SIMGPU_EXPORT CUresult symbol args;
#include "device/cuda/driver_functions.def"
#include "compiler_functions.def"
#undef GANTRY_CUDA_FUNCTION

namespace simgpu {

enum class Needs { driver, nothing };

class Entry {
  public:
    explicit Entry(EntryId id, Needs needs = Needs::driver);
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

    CUresult refusal() const { return refusal_; }
    // Machine time from the call until it may return.
    void costs(Nanoseconds machine_time) { cost_ = machine_time; }
    Nanoseconds began() const { return began_; }

  private:
    sanitizer::Hidden hidden_;
    CUresult refusal_ = CUDA_SUCCESS;
    Nanoseconds began_ = 0;
    Nanoseconds cost_ = 0;
};

// Stream capture: is a call that must not happen during a capture prohibited to this thread? It
// then also spoils the capture, as in the driver.
CUresult refuse_during_capture(Driver& d);

}  // namespace simgpu

// Opens an entry point: `entry`, `d` and the lock are there afterwards.
#define SIM_ENTER(symbol)                                        \
    simgpu::Entry entry(simgpu::EntryId::symbol);                \
    if (entry.refusal() != CUDA_SUCCESS) return entry.refusal(); \
    simgpu::Driver& d = *simgpu::driver();                       \
    simgpu::Guard guard(d.mutex)

#define SIM_TRY(expression)                                                       \
    do {                                                                          \
        if (const CUresult sim_result = (expression); sim_result != CUDA_SUCCESS) \
            return sim_result;                                                    \
    } while (false)
