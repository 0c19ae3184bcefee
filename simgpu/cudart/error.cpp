// SPDX-License-Identifier: BSD-3-Clause
// Errors by name and text.
#include "runtime.hpp"

using simgpu::cudart::Error;

namespace {

struct Name {
    Error error;
    const char* name;
};
constexpr Name kNames[] = {
    {0, "cudaSuccess"},
    {1, "cudaErrorInvalidValue"},
    {2, "cudaErrorMemoryAllocation"},
    {3, "cudaErrorInitializationError"},
    {4, "cudaErrorCudartUnloading"},
    {21, "cudaErrorInvalidMemcpyDirection"},
    {34, "cudaErrorStubLibrary"},
    {46, "cudaErrorDevicesUnavailable"},
    {98, "cudaErrorInvalidDeviceFunction"},
    {100, "cudaErrorNoDevice"},
    {101, "cudaErrorInvalidDevice"},
    {200, "cudaErrorInvalidKernelImage"},
    {201, "cudaErrorDeviceUninitialized"},
    {209, "cudaErrorNoKernelImageForDevice"},
    {217, "cudaErrorPeerAccessUnsupported"},
    {218, "cudaErrorInvalidPtx"},
    {400, "cudaErrorInvalidResourceHandle"},
    {401, "cudaErrorIllegalState"},
    {500, "cudaErrorSymbolNotFound"},
    {600, "cudaErrorNotReady"},
    {700, "cudaErrorIllegalAddress"},
    {701, "cudaErrorLaunchOutOfResources"},
    {704, "cudaErrorPeerAccessAlreadyEnabled"},
    {705, "cudaErrorPeerAccessNotEnabled"},
    {708, "cudaErrorSetOnActiveProcess"},
    {709, "cudaErrorContextIsDestroyed"},
    {712, "cudaErrorHostMemoryAlreadyRegistered"},
    {713, "cudaErrorHostMemoryNotRegistered"},
    {719, "cudaErrorLaunchFailure"},
    {800, "cudaErrorNotPermitted"},
    {801, "cudaErrorNotSupported"},
    {900, "cudaErrorStreamCaptureUnsupported"},
    {901, "cudaErrorStreamCaptureInvalidated"},
    {906, "cudaErrorStreamCaptureImplicit"},
    {999, "cudaErrorUnknown"},
};

}  // namespace

CUDART_EXPORT Error cudaGetLastError() {
    return simgpu::cudart::take_last_error();
}

CUDART_EXPORT Error cudaPeekAtLastError() {
    return simgpu::cudart::last_error();
}

CUDART_EXPORT const char* cudaGetErrorName(Error error) {
    for (const Name& each : kNames) {
        if (each.error == error) {
            return each.name;
        }
    }
    return "unrecognized error code";
}

CUDART_EXPORT const char* cudaGetErrorString(Error error) {
    const char* text = nullptr;
    if (error == simgpu::cudart::kInvalidDirection) {
        return "invalid copy direction for memcpy";
    }
    if (error == simgpu::cudart::kInvalidDeviceFunction) {
        return "invalid device function";
    }
    const CUresult found = cuGetErrorString(static_cast<CUresult>(error), &text);
    return found == CUDA_SUCCESS && text != nullptr ? text : "unrecognized error code";
}
