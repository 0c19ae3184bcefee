// SPDX-License-Identifier: BSD-3-Clause
// Pools: memory that is allocated and freed in the order of a stream.
#include "runtime.hpp"

using simgpu::cudart::address;
using simgpu::cudart::call;
using simgpu::cudart::Error;

CUDART_EXPORT Error cudaMallocAsync(void** memory, std::size_t bytes, CUstream stream) {
    return call([&] { return cuMemAllocAsync(address(memory), bytes, stream); });
}

CUDART_EXPORT Error cudaMallocFromPoolAsync(void** memory, std::size_t bytes, CUmemoryPool pool,
                                            CUstream stream) {
    return call([&] { return cuMemAllocFromPoolAsync(address(memory), bytes, pool, stream); });
}

CUDART_EXPORT Error cudaFreeAsync(void* memory, CUstream stream) {
    return call([&] { return cuMemFreeAsync(address(memory), stream); });
}

CUDART_EXPORT Error cudaDeviceGetDefaultMemPool(CUmemoryPool* pool, int device) {
    return call([&] { return cuDeviceGetDefaultMemPool(pool, device); });
}

CUDART_EXPORT Error cudaDeviceGetMemPool(CUmemoryPool* pool, int device) {
    return call([&] { return cuDeviceGetMemPool(pool, device); });
}

CUDART_EXPORT Error cudaDeviceSetMemPool(int device, CUmemoryPool pool) {
    return call([&] { return cuDeviceSetMemPool(device, pool); });
}

CUDART_EXPORT Error cudaMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
    return call([&] { return cuMemPoolCreate(pool, properties); });
}

CUDART_EXPORT Error cudaMemPoolDestroy(CUmemoryPool pool) {
    return call([&] { return cuMemPoolDestroy(pool); });
}

CUDART_EXPORT Error cudaMemPoolTrimTo(CUmemoryPool pool, std::size_t bytes_to_keep) {
    return call([&] { return cuMemPoolTrimTo(pool, bytes_to_keep); });
}

CUDART_EXPORT Error cudaMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                                            void* value) {
    return call([&] { return cuMemPoolGetAttribute(pool, attribute, value); });
}

CUDART_EXPORT Error cudaMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                                            void* value) {
    return call([&] { return cuMemPoolSetAttribute(pool, attribute, value); });
}

CUDART_EXPORT Error cudaMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* access,
                                         std::size_t count) {
    return call([&] { return cuMemPoolSetAccess(pool, access, count); });
}

CUDART_EXPORT Error cudaMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool,
                                         CUmemLocation* location) {
    return call([&] { return cuMemPoolGetAccess(flags, pool, location); });
}

CUDART_EXPORT Error cudaMemPoolExportToShareableHandle(void* shareable, CUmemoryPool pool,
                                                       CUmemAllocationHandleType type,
                                                       unsigned flags) {
    return call([&] { return cuMemPoolExportToShareableHandle(shareable, pool, type, flags); });
}

CUDART_EXPORT Error cudaMemPoolImportFromShareableHandle(CUmemoryPool* pool, void* shareable,
                                                         CUmemAllocationHandleType type,
                                                         unsigned flags) {
    return call([&] { return cuMemPoolImportFromShareableHandle(pool, shareable, type, flags); });
}

CUDART_EXPORT Error cudaMemPoolExportPointer(CUmemPoolPtrExportData* data, void* memory) {
    return call([&] { return cuMemPoolExportPointer(data, address(memory)); });
}

CUDART_EXPORT Error cudaMemPoolImportPointer(void** memory, CUmemoryPool pool,
                                             CUmemPoolPtrExportData* data) {
    return call([&] { return cuMemPoolImportPointer(address(memory), pool, data); });
}
