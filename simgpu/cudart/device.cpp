// SPDX-License-Identifier: BSD-3-Clause
// Devices, peers and versions.
#include "runtime.hpp"

using simgpu::cudart::call;
using simgpu::cudart::Error;
using simgpu::cudart::remember;

namespace {

// With the driver started, without a context.
template <class Function>
Error ask(Function function) {
    const CUresult started = simgpu::cudart::start();
    return remember(started != CUDA_SUCCESS ? started : function());
}

}  // namespace

CUDART_EXPORT Error cudaGetDeviceCount(int* count) {
    if (count != nullptr) {
        *count = 0;
    }
    return ask([&] { return cuDeviceGetCount(count); });
}

CUDART_EXPORT Error cudaGetDevice(int* device) {
    return ask([&] {
        if (device == nullptr) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        *device = simgpu::cudart::device();
        return CUDA_SUCCESS;
    });
}

CUDART_EXPORT Error cudaSetDevice(int device) {
    return remember(simgpu::cudart::set_device(device));
}

CUDART_EXPORT Error cudaInitDevice(int device, unsigned, unsigned) {
    CUcontext context = nullptr;
    return ask([&] { return simgpu::cudart::primary_context(device, &context); });
}

CUDART_EXPORT Error cudaDeviceReset() {
    return ask([] { return simgpu::cudart::reset_device(); });
}

CUDART_EXPORT Error cudaDeviceSynchronize() {
    return call([] { return cuCtxSynchronize(); });
}

CUDART_EXPORT Error cudaSetDeviceFlags(unsigned flags) {
    return ask([&] { return cuDevicePrimaryCtxSetFlags_v2(simgpu::cudart::device(), flags); });
}

CUDART_EXPORT Error cudaGetDeviceFlags(unsigned* flags) {
    return call([&] { return cuCtxGetFlags(flags); });
}

CUDART_EXPORT Error cudaDeviceGetAttribute(int* value, CUdevice_attribute attribute, int device) {
    return ask([&] { return cuDeviceGetAttribute(value, attribute, device); });
}

CUDART_EXPORT Error cudaDeviceGetPCIBusId(char* id, int length, int device) {
    return ask([&] { return cuDeviceGetPCIBusId(id, length, device); });
}

CUDART_EXPORT Error cudaDeviceGetByPCIBusId(int* device, const char* id) {
    return ask([&] { return cuDeviceGetByPCIBusId(device, id); });
}

CUDART_EXPORT Error cudaDeviceGetLimit(std::size_t* value, CUlimit limit) {
    return call([&] { return cuCtxGetLimit(value, limit); });
}

CUDART_EXPORT Error cudaDeviceSetLimit(CUlimit limit, std::size_t value) {
    return call([&] { return cuCtxSetLimit(limit, value); });
}

CUDART_EXPORT Error cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    return call([&] { return cuCtxGetStreamPriorityRange(least, greatest); });
}

CUDART_EXPORT Error cudaDeviceGetCacheConfig(int* config) {
    *config = 0;
    return CUDA_SUCCESS;
}

CUDART_EXPORT Error cudaDeviceSetCacheConfig(int) {
    return CUDA_SUCCESS;
}

CUDART_EXPORT Error cudaDeviceCanAccessPeer(int* can, int device, int peer) {
    return ask([&] { return cuDeviceCanAccessPeer(can, device, peer); });
}

CUDART_EXPORT Error cudaDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute,
                                              int source, int target) {
    return ask([&] { return cuDeviceGetP2PAttribute(value, attribute, source, target); });
}

CUDART_EXPORT Error cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
    return call([&] {
        CUcontext context = nullptr;
        const CUresult found = simgpu::cudart::primary_context(peer, &context);
        return found != CUDA_SUCCESS ? found : cuCtxEnablePeerAccess(context, flags);
    });
}

CUDART_EXPORT Error cudaDeviceDisablePeerAccess(int peer) {
    return call([&] {
        CUcontext context = nullptr;
        const CUresult found = simgpu::cudart::primary_context(peer, &context);
        return found != CUDA_SUCCESS ? found : cuCtxDisablePeerAccess(context);
    });
}

CUDART_EXPORT Error cudaDriverGetVersion(int* version) {
    return remember(cuDriverGetVersion(version));
}

CUDART_EXPORT Error cudaRuntimeGetVersion(int* version) {
    if (version == nullptr) {
        return remember(CUDA_ERROR_INVALID_VALUE);
    }
    *version = CUDART_VERSION;
    return CUDA_SUCCESS;
}

CUDART_EXPORT Error cudaGetDriverEntryPointByVersion(const char* symbol, void** function,
                                                     unsigned version, unsigned long long flags,
                                                     CUdriverProcAddressQueryResult* found) {
    return ask([&] {
        return cuGetProcAddress_v2(symbol, function, static_cast<int>(version), flags, found);
    });
}

CUDART_EXPORT Error cudaGetDriverEntryPoint(const char* symbol, void** function,
                                            unsigned long long flags,
                                            CUdriverProcAddressQueryResult* found) {
    return cudaGetDriverEntryPointByVersion(symbol, function, CUDART_VERSION, flags, found);
}

CUDART_EXPORT Error cudaProfilerStart() {
    return CUDA_SUCCESS;
}

CUDART_EXPORT Error cudaProfilerStop() {
    return CUDA_SUCCESS;
}
