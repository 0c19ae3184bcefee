// SPDX-License-Identifier: BSD-3-Clause
// Memory: device, managed and page-locked; what a pointer is; handles for other processes.
#include "runtime.hpp"

using simgpu::cudart::address;
using simgpu::cudart::call;
using simgpu::cudart::Error;

namespace {

enum MemoryType { unregistered = 0, host = 1, device = 2, managed = 3 };

struct PointerAttributes {
    int type;
    int device;
    void* devicePointer;
    void* hostPointer;
#if CUDART_VERSION >= 13000
    long reserved[8];
#endif
};

CUresult attributes(PointerAttributes* all, const void* pointer) {
    if (all == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    unsigned kind = 0, is_managed = 0;
    int ordinal = -2;
    void *on_device = nullptr, *on_host = nullptr;
    CUpointer_attribute asked[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
        CU_POINTER_ATTRIBUTE_HOST_POINTER};
    void* answers[] = {&kind, &is_managed, &ordinal, &on_device, &on_host};
    const CUresult result = cuPointerGetAttributes(5, asked, answers, address(pointer));
    if (result != CUDA_SUCCESS) {
        return result;
    }
    *all = {};
    if (kind == 0) {
        all->type = unregistered;
        all->device = -2;
        all->hostPointer = const_cast<void*>(pointer);
        return CUDA_SUCCESS;
    }
    all->type = is_managed != 0 ? managed : kind == CU_MEMORYTYPE_HOST ? host : device;
    all->device = ordinal;
    all->devicePointer = on_device;
    all->hostPointer = on_host;
    return CUDA_SUCCESS;
}

struct Extent {
    std::size_t width, height, depth;
};
struct PitchedPointer {
    void* address;
    std::size_t pitch, width, height;
};

}  // namespace

CUDART_EXPORT Error cudaMalloc(void** memory, std::size_t bytes) {
    return call([&] {
        if (memory != nullptr && bytes == 0) {
            *memory = nullptr;
            return CUDA_SUCCESS;
        }
        return cuMemAlloc_v2(address(memory), bytes);
    });
}

CUDART_EXPORT Error cudaMallocPitch(void** memory, std::size_t* pitch, std::size_t width,
                                    std::size_t height) {
    return call([&] { return cuMemAllocPitch_v2(address(memory), pitch, width, height, 4); });
}

CUDART_EXPORT Error cudaMalloc3D(PitchedPointer* memory, Extent extent) {
    memory->width = extent.width;
    memory->height = extent.height;
    return cudaMallocPitch(&memory->address, &memory->pitch, extent.width,
                           extent.height * extent.depth);
}

CUDART_EXPORT Error cudaMallocManaged(void** memory, std::size_t bytes, unsigned flags) {
    return call([&] { return cuMemAllocManaged(address(memory), bytes, flags); });
}

CUDART_EXPORT Error cudaFree(void* memory) {
    return call([&] { return memory == nullptr ? CUDA_SUCCESS : cuMemFree_v2(address(memory)); });
}

CUDART_EXPORT Error cudaMallocHost(void** memory, std::size_t bytes) {
    return call([&] { return cuMemAllocHost_v2(memory, bytes); });
}

CUDART_EXPORT Error cudaHostAlloc(void** memory, std::size_t bytes, unsigned flags) {
    return call([&] { return cuMemHostAlloc(memory, bytes, flags); });
}

CUDART_EXPORT Error cudaFreeHost(void* memory) {
    return call([&] { return memory == nullptr ? CUDA_SUCCESS : cuMemFreeHost(memory); });
}

CUDART_EXPORT Error cudaHostRegister(void* memory, std::size_t bytes, unsigned flags) {
    return call([&] { return cuMemHostRegister_v2(memory, bytes, flags); });
}

CUDART_EXPORT Error cudaHostUnregister(void* memory) {
    return call([&] { return cuMemHostUnregister(memory); });
}

CUDART_EXPORT Error cudaHostGetDevicePointer(void** on_device, void* memory, unsigned flags) {
    return call([&] { return cuMemHostGetDevicePointer_v2(address(on_device), memory, flags); });
}

CUDART_EXPORT Error cudaHostGetFlags(unsigned* flags, void* memory) {
    return call([&] { return cuMemHostGetFlags(flags, memory); });
}

CUDART_EXPORT Error cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
    return call([&] { return cuMemGetInfo_v2(free_bytes, total_bytes); });
}

CUDART_EXPORT Error cudaPointerGetAttributes(PointerAttributes* all, const void* pointer) {
    return call([&] { return attributes(all, pointer); });
}

#if CUDART_VERSION < 13000
CUDART_EXPORT Error cudaMemAdvise(const void* memory, std::size_t bytes, int advice, int device) {
    return call([&] { return cuMemAdvise(address(memory), bytes, advice, device); });
}

CUDART_EXPORT Error cudaMemPrefetchAsync(const void* memory, std::size_t bytes, int device,
                                         CUstream stream) {
    return call([&] { return cuMemPrefetchAsync(address(memory), bytes, device, stream); });
}
#define CUDART_V2(name) name##_v2
#else
#define CUDART_V2(name) name
#endif

CUDART_EXPORT Error CUDART_V2(cudaMemAdvise)(const void* memory, std::size_t bytes, int advice,
                                             CUmemLocation location) {
    return call([&] { return cuMemAdvise_v2(address(memory), bytes, advice, location); });
}

CUDART_EXPORT Error CUDART_V2(cudaMemPrefetchAsync)(const void* memory, std::size_t bytes,
                                                    CUmemLocation location, unsigned flags,
                                                    CUstream stream) {
    return call(
        [&] { return cuMemPrefetchAsync_v2(address(memory), bytes, location, flags, stream); });
}

CUDART_EXPORT Error cudaIpcGetMemHandle(CUipcMemHandle* handle, void* memory) {
    return call([&] { return cuIpcGetMemHandle(handle, address(memory)); });
}

CUDART_EXPORT Error cudaIpcOpenMemHandle(void** memory, CUipcMemHandle handle, unsigned flags) {
    return call([&] { return cuIpcOpenMemHandle_v2(address(memory), handle, flags); });
}

CUDART_EXPORT Error cudaIpcCloseMemHandle(void* memory) {
    return call([&] { return cuIpcCloseMemHandle(address(memory)); });
}
