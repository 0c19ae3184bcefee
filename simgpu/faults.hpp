// SPDX-License-Identifier: BSD-3-Clause
// Fault injection: a list of "name:n:result" separated by commas, from SIMGPU_FAULT or
// simgpu_fault().
//   cuMemAlloc_v2:2:2   the second call returns 2 (CUDA_ERROR_OUT_OF_MEMORY); '*' for n: every call
//   no_device           cuInit finds none
//   operation:5:700     the fifth operation fails with a sticky error
//   event:3:never       the third recorded event never completes
// Counting starts when the fault is set.
#pragma once

#include <string>

#include "device/cuda/driver_abi.h"
#include "entry_id.hpp"

namespace simgpu {

void load_faults_from_environment(std::string* complaint);
// False, and nothing changed, when the text cannot be understood.
bool add_faults(const char* text, std::string* complaint);
void clear_faults();
bool no_device_injected();
bool any_faults();  // one relaxed load

// What this call should return instead of working; CUDA_SUCCESS: it should work.
CUresult injected_result(EntryId entry);
// Hands operation and event faults to the scheduler, whose lock the caller holds.
struct Driver;
void arm_scheduler_faults(Driver& d);

}  // namespace simgpu
