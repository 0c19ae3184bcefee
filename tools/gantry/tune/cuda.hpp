// SPDX-License-Identifier: BSD-3-Clause
//
// The driver calls that `gantry tune` times, by dlopen. A refused call is an exception that names
// it: the command ends with that sentence.
#pragma once

#include "base/units.hpp"
#include "device/cuda/driver_abi.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace gantry::tool {

#define GANTRY_TUNE_CALLS(X)              \
    X(cuInit)                             \
    X(cuDriverGetVersion)                 \
    X(cuGetErrorName)                     \
    X(cuDeviceGetCount)                   \
    X(cuDeviceGetName)                    \
    X(cuDeviceTotalMem_v2)                \
    X(cuDeviceGetAttribute)               \
    X(cuDeviceCanAccessPeer)              \
    X(cuDeviceGetP2PAttribute)            \
    X(cuDeviceGetPCIBusId)                \
    X(cuDevicePrimaryCtxRetain)           \
    X(cuCtxSetCurrent)                    \
    X(cuCtxSynchronize)                   \
    X(cuCtxEnablePeerAccess)              \
    X(cuMemAlloc_v2)                      \
    X(cuMemFree_v2)                       \
    X(cuMemHostAlloc)                     \
    X(cuMemFreeHost)                      \
    X(cuMemHostRegister_v2)               \
    X(cuMemHostUnregister)                \
    X(cuPointerGetAttribute)              \
    X(cuPointerGetAttributes)             \
    X(cuStreamCreate)                     \
    X(cuStreamQuery)                      \
    X(cuStreamSynchronize)                \
    X(cuStreamWriteValue32_v2)            \
    X(cuEventCreate)                      \
    X(cuEventRecord)                      \
    X(cuEventQuery)                       \
    X(cuEventDestroy_v2)                  \
    X(cuMemcpyDtoHAsync_v2)               \
    X(cuMemcpyHtoDAsync_v2)               \
    X(cuMemcpyDtoDAsync_v2)               \
    X(cuMemcpyPeerAsync)                  \
    X(cuMemcpy2DAsync_v2)                 \
    X(cuMemsetD8Async)                    \
    X(cuModuleLoadData)                   \
    X(cuModuleGetFunction)                \
    X(cuModuleUnload)                     \
    X(cuLaunchKernel)                     \
    X(cuIpcGetMemHandle)                  \
    X(cuIpcOpenMemHandle_v2)              \
    X(cuIpcCloseMemHandle)                \
    X(cuMemCreate)                        \
    X(cuMemRelease)                       \
    X(cuMemAddressReserve)                \
    X(cuMemMap)                           \
    X(cuMemSetAccess)                     \
    X(cuMemExportToShareableHandle)       \
    X(cuMemImportFromShareableHandle)     \
    X(cuMemPoolCreate)                    \
    X(cuMemAllocFromPoolAsync)            \
    X(cuMemPoolExportToShareableHandle)   \
    X(cuMemPoolImportFromShareableHandle) \
    X(cuMemPoolSetAccess)                 \
    X(cuMemPoolExportPointer)             \
    X(cuMemPoolImportPointer)

struct TuneFailure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Cuda {
#define GANTRY_TUNE_CALL(symbol) PFN_##symbol symbol = nullptr;
    GANTRY_TUNE_CALLS(GANTRY_TUNE_CALL)
#undef GANTRY_TUNE_CALL
    PFN_cuMemcpyBatchAsync cuMemcpyBatchAsync = nullptr;  // null before CUDA 12.8
    // Loads and initialises the driver; throws when there is none.
    explicit Cuda(const std::string& library);
    void must(CUresult result, const char* call) const;

    int devices() const;
    std::string name(int gpu) const;
    // Makes the primary context of that GPU current.
    void use(int gpu);
    CUdeviceptr allocate(std::size_t bytes);
    std::byte* allocate_host(std::size_t bytes);
    CUstream stream();
    // Until everything in the stream has ended, by asking all the time.
    void wait(CUstream stream) const;
    // An empty kernel; null when this driver runs none of ours.
    CUfunction kernel();
};

inline double now_ns() {
    return std::chrono::duration<double, std::nano>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}
// The lower quartile of `samples` results: whatever disturbs a measurement makes it longer.
double typical_of(int samples, const std::function<double()>& sample);
// How long one call of `action` takes, likewise.
double time_of(int samples, const std::function<void()>& action);

}  // namespace gantry::tool
