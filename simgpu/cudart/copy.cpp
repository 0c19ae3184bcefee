// SPDX-License-Identifier: BSD-3-Clause
// Copies and fills. The direction that a program names says which side is host memory; the driver then
// refuses what does not fit.
#include "runtime.hpp"

using simgpu::cudart::address;
using simgpu::cudart::call;
using simgpu::cudart::Error;
using simgpu::cudart::remember;

namespace {

enum Direction { host_to_host, host_to_device, device_to_host, device_to_device, by_address };

bool known(int direction) {
    return direction >= host_to_host && direction <= by_address;
}

CUmemorytype source_type(int direction) {
    if (direction == by_address) {
        return CU_MEMORYTYPE_UNIFIED;
    }
    return direction == host_to_host || direction == host_to_device ? CU_MEMORYTYPE_HOST
                                                                    : CU_MEMORYTYPE_DEVICE;
}

CUmemorytype target_type(int direction) {
    if (direction == by_address) {
        return CU_MEMORYTYPE_UNIFIED;
    }
    return direction == host_to_host || direction == device_to_host ? CU_MEMORYTYPE_HOST
                                                                    : CU_MEMORYTYPE_DEVICE;
}

template <class Function>
Error copy(int direction, Function function) {
    return known(direction) ? call(function) : remember(simgpu::cudart::kInvalidDirection);
}

struct Position {
    std::size_t x, y, z;
};
struct PitchedPointer {
    void* address;
    std::size_t pitch, width, height;
};
struct Extent {
    std::size_t width, height, depth;
};
struct Copy3D {
    CUarray source_array;
    Position source_at;
    PitchedPointer source;
    CUarray target_array;
    Position target_at;
    PitchedPointer target;
    Extent extent;
    int direction;
};

CUDA_MEMCPY2D strided(void* target, std::size_t target_pitch, const void* source,
                      std::size_t source_pitch, std::size_t width, std::size_t height,
                      int direction) {
    CUDA_MEMCPY2D all{};
    all.srcMemoryType = source_type(direction);
    all.srcHost = source;
    all.srcDevice = address(source);
    all.srcPitch = source_pitch;
    all.dstMemoryType = target_type(direction);
    all.dstHost = target;
    all.dstDevice = address(target);
    all.dstPitch = target_pitch;
    all.WidthInBytes = width;
    all.Height = height;
    return all;
}

CUresult box(const Copy3D* copy, CUDA_MEMCPY3D* all) {
    if (copy == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (copy->source_array != nullptr || copy->target_array != nullptr) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    *all = {};
    all->srcMemoryType = source_type(copy->direction);
    all->srcHost = copy->source.address;
    all->srcDevice = address(copy->source.address);
    all->srcPitch = copy->source.pitch;
    all->srcHeight = copy->source.height;
    all->srcXInBytes = copy->source_at.x;
    all->srcY = copy->source_at.y;
    all->srcZ = copy->source_at.z;
    all->dstMemoryType = target_type(copy->direction);
    all->dstHost = copy->target.address;
    all->dstDevice = address(copy->target.address);
    all->dstPitch = copy->target.pitch;
    all->dstHeight = copy->target.height;
    all->dstXInBytes = copy->target_at.x;
    all->dstY = copy->target_at.y;
    all->dstZ = copy->target_at.z;
    all->WidthInBytes = copy->extent.width;
    all->Height = copy->extent.height;
    all->Depth = copy->extent.depth;
    return CUDA_SUCCESS;
}

template <class Function>
CUresult between(int target_device, int source_device, Function function) {
    CUcontext target = nullptr, source = nullptr;
    CUresult result = simgpu::cudart::primary_context(target_device, &target);
    if (result == CUDA_SUCCESS) {
        result = simgpu::cudart::primary_context(source_device, &source);
    }
    return result != CUDA_SUCCESS ? result : function(target, source);
}

}  // namespace

CUDART_EXPORT Error cudaMemcpy(void* target, const void* source, std::size_t bytes, int direction) {
    return copy(direction, [&] {
        switch (direction) {
            case host_to_device: return cuMemcpyHtoD_v2(address(target), source, bytes);
            case device_to_host: return cuMemcpyDtoH_v2(target, address(source), bytes);
            case device_to_device: return cuMemcpyDtoD_v2(address(target), address(source), bytes);
            default: return cuMemcpy(address(target), address(source), bytes);
        }
    });
}

CUDART_EXPORT Error cudaMemcpyAsync(void* target, const void* source, std::size_t bytes,
                                    int direction, CUstream stream) {
    return copy(direction, [&] {
        switch (direction) {
            case host_to_device:
                return cuMemcpyHtoDAsync_v2(address(target), source, bytes, stream);
            case device_to_host:
                return cuMemcpyDtoHAsync_v2(target, address(source), bytes, stream);
            case device_to_device:
                return cuMemcpyDtoDAsync_v2(address(target), address(source), bytes, stream);
            default: return cuMemcpyAsync(address(target), address(source), bytes, stream);
        }
    });
}

CUDART_EXPORT Error cudaMemcpyPeer(void* target, int target_device, const void* source,
                                   int source_device, std::size_t bytes) {
    return call([&] {
        return between(target_device, source_device, [&](CUcontext to, CUcontext from) {
            return cuMemcpyPeer(address(target), to, address(source), from, bytes);
        });
    });
}

CUDART_EXPORT Error cudaMemcpyPeerAsync(void* target, int target_device, const void* source,
                                        int source_device, std::size_t bytes, CUstream stream) {
    return call([&] {
        return between(target_device, source_device, [&](CUcontext to, CUcontext from) {
            return cuMemcpyPeerAsync(address(target), to, address(source), from, bytes, stream);
        });
    });
}

CUDART_EXPORT Error cudaMemcpy2D(void* target, std::size_t target_pitch, const void* source,
                                 std::size_t source_pitch, std::size_t width, std::size_t height,
                                 int direction) {
    return copy(direction, [&] {
        const CUDA_MEMCPY2D all =
            strided(target, target_pitch, source, source_pitch, width, height, direction);
        return cuMemcpy2DUnaligned_v2(&all);
    });
}

CUDART_EXPORT Error cudaMemcpy2DAsync(void* target, std::size_t target_pitch, const void* source,
                                      std::size_t source_pitch, std::size_t width,
                                      std::size_t height, int direction, CUstream stream) {
    return copy(direction, [&] {
        const CUDA_MEMCPY2D all =
            strided(target, target_pitch, source, source_pitch, width, height, direction);
        return cuMemcpy2DAsync_v2(&all, stream);
    });
}

CUDART_EXPORT Error cudaMemcpy3D(const Copy3D* what) {
    return copy(what != nullptr ? what->direction : by_address, [&] {
        CUDA_MEMCPY3D all{};
        const CUresult described = box(what, &all);
        return described != CUDA_SUCCESS ? described : cuMemcpy3D_v2(&all);
    });
}

CUDART_EXPORT Error cudaMemcpy3DAsync(const Copy3D* what, CUstream stream) {
    return copy(what != nullptr ? what->direction : by_address, [&] {
        CUDA_MEMCPY3D all{};
        const CUresult described = box(what, &all);
        return described != CUDA_SUCCESS ? described : cuMemcpy3DAsync_v2(&all, stream);
    });
}

CUDART_EXPORT Error cudaMemset(void* memory, int value, std::size_t bytes) {
    return call(
        [&] { return cuMemsetD8_v2(address(memory), static_cast<unsigned char>(value), bytes); });
}

CUDART_EXPORT Error cudaMemsetAsync(void* memory, int value, std::size_t bytes, CUstream stream) {
    return call([&] {
        return cuMemsetD8Async(address(memory), static_cast<unsigned char>(value), bytes, stream);
    });
}

CUDART_EXPORT Error cudaMemset2D(void* memory, std::size_t pitch, int value, std::size_t width,
                                 std::size_t height) {
    return call([&] {
        return cuMemsetD2D8_v2(address(memory), pitch, static_cast<unsigned char>(value), width,
                               height);
    });
}

CUDART_EXPORT Error cudaMemset2DAsync(void* memory, std::size_t pitch, int value, std::size_t width,
                                      std::size_t height, CUstream stream) {
    return call([&] {
        return cuMemsetD2D8Async(address(memory), pitch, static_cast<unsigned char>(value), width,
                                 height, stream);
    });
}
