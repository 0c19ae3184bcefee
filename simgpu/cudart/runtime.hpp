// SPDX-License-Identifier: BSD-3-Clause
// The CUDA runtime over the simulated driver: what all of its functions do. The numbers of the runtime's
// errors are the driver's. A call initialises the driver, makes the primary context of the thread's
// device current where the thread has none, and keeps its failure for cudaGetLastError.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/cuda/driver_abi.h"

#define CUDART_EXPORT extern "C" __attribute__((visibility("default")))

extern "C" {
#define GANTRY_CUDA_FUNCTION(symbol, base, version, twin, args) CUresult symbol args;
#include "device/cuda/driver_functions.def"
#undef GANTRY_CUDA_FUNCTION
}

namespace simgpu::cudart {

using Error = int;  // cudaError_t

// Of the runtime alone.
constexpr Error kInvalidDirection = 21;
constexpr Error kInvalidDeviceFunction = 98;

// Keeps a failure; "not ready" is none.
Error remember(int result);
Error last_error();
Error take_last_error();

CUresult start();
// The thread's device, whether there is a context or not.
int device();
CUresult set_device(int ordinal);
// Forgets the primary context of the thread's device.
CUresult reset_device();
CUresult primary_context(int ordinal, CUcontext* context);
// Driver started, a context current.
CUresult enter();

template <class Function>
Error call(Function function) {
    const CUresult ready = enter();
    return remember(ready != CUDA_SUCCESS ? ready : function());
}

inline CUdeviceptr address(const void* pointer) {
    return reinterpret_cast<CUdeviceptr>(pointer);
}
inline CUdeviceptr* address(void** pointer) {
    return reinterpret_cast<CUdeviceptr*>(pointer);
}

}  // namespace simgpu::cudart
