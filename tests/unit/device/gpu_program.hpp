// SPDX-License-Identifier: BSD-3-Clause
//
// The part of the program under test that is not Gantry: it loads a driver, initialises it and
// allocates memory, as an application would. The driver is the one named by GANTRY_TEST_CUDA, else
// what the loader finds as libcuda.so.1 (CTest puts the simulated one there), else the simulated
// one of this build; without any the tests are skipped. What only the simulated driver can do
// (counters, faults) is null on a real one.
#pragma once

#include "device/cuda/driver_abi.h"

#include "../../../simgpu/simgpu.h"

#include <string>

namespace gantry::device::testing_support {

#define GANTRY_TEST_CALLS(X)        \
    X(cuInit)                       \
    X(cuDeviceGetCount)             \
    X(cuDeviceGetName)              \
    X(cuDeviceGetAttribute)         \
    X(cuDeviceTotalMem_v2)          \
    X(cuDeviceGetPCIBusId)          \
    X(cuDeviceCanAccessPeer)        \
    X(cuDeviceGetP2PAttribute)      \
    X(cuDevicePrimaryCtxRetain)     \
    X(cuDevicePrimaryCtxRelease_v2) \
    X(cuDevicePrimaryCtxReset_v2)   \
    X(cuCtxCreate_v2)               \
    X(cuCtxDestroy_v2)              \
    X(cuCtxSetCurrent)              \
    X(cuCtxGetCurrent)              \
    X(cuCtxSynchronize)             \
    X(cuMemAlloc_v2)                \
    X(cuMemFree_v2)                 \
    X(cuMemAllocHost_v2)            \
    X(cuMemFreeHost)                \
    X(cuMemAllocManaged)            \
    X(cuMemHostRegister_v2)         \
    X(cuMemHostUnregister)          \
    X(cuMemAllocAsync)              \
    X(cuMemFreeAsync)               \
    X(cuMemPoolCreate)              \
    X(cuMemAllocFromPoolAsync)      \
    X(cuMemCreate)                  \
    X(cuMemRelease)                 \
    X(cuMemAddressReserve)          \
    X(cuMemAddressFree)             \
    X(cuMemMap)                     \
    X(cuMemUnmap)                   \
    X(cuMemSetAccess)               \
    X(cuMemcpyDtoH_v2)              \
    X(cuMemcpyHtoD_v2)              \
    X(cuMemsetD8_v2)                \
    X(cuMemsetD8Async)              \
    X(cuMemcpyDtoHAsync_v2)         \
    X(cuPointerGetAttribute)        \
    X(cuStreamCreate)               \
    X(cuStreamDestroy_v2)           \
    X(cuStreamSynchronize)          \
    X(cuStreamBeginCapture_v2)      \
    X(cuStreamEndCapture)           \
    X(cuGraphDestroy)

struct GpuProgram {
#define GANTRY_TEST_CALL(symbol) PFN_##symbol symbol = nullptr;
    GANTRY_TEST_CALLS(GANTRY_TEST_CALL)
#undef GANTRY_TEST_CALL
    decltype(&::simgpu_calls) simgpu_calls = nullptr;
    decltype(&::simgpu_fault) simgpu_fault = nullptr;
    decltype(&::simgpu_take_census) simgpu_take_census = nullptr;
    bool simulated() const {
        return simgpu_calls != nullptr;
    }

    // Before it returns, which cuMemsetD8 alone does not promise: what copies behind it waits for no
    // stream of the program's.
    void fill(CUdeviceptr to, unsigned char value, std::size_t bytes) const {
        cuMemsetD8_v2(to, value, bytes);
        cuStreamSynchronize(nullptr);
    }

    // File name of the driver to test with; empty when there is none.
    static std::string library();
    // Loads it; false when it cannot be.
    bool load();
};

}  // namespace gantry::device::testing_support
