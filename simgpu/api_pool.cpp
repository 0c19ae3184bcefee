// SPDX-License-Identifier: BSD-3-Clause
// Pools and stream-ordered allocation. The address is given at once and taken back when the free is
// reached in its stream. A pool made with a file descriptor handle type travels: the descriptor is
// a memfd that names the pool, a pointer travels as an export record. Memory of the default pool
// cannot be shared.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "entry.hpp"
#include "memory.hpp"
#include "pools.hpp"

namespace simgpu {

Pool* new_default_pool(Device& device) {
    auto* pool = new Pool;
    pool->device = &device;
    pool->is_default = true;
    return pool;
}

void pool_lost(Pool& pool, std::size_t bytes) {
    pool.used_bytes -= std::min(pool.used_bytes, bytes);  // an imported pool counts nothing
}

}  // namespace simgpu

namespace {

using simgpu::Device;
using simgpu::Driver;
using simgpu::Made;
using simgpu::MemoryKind;
using simgpu::Op;
using simgpu::Pool;
using simgpu::Range;
using simgpu::Slice;
using simgpu::StreamRef;

constexpr std::uint32_t kPoolMagic = 0x53475031;

struct PoolRecord {  // the contents of a pool's shareable descriptor
    std::uint32_t magic;
    std::int32_t process;
    std::int32_t physical_device;
    std::int32_t unused;
    std::uint64_t id;
};

struct PointerRecord {
    std::uint32_t magic;
    std::int32_t process;
    std::int32_t fd;
    std::uint32_t base_offset;
    std::uint64_t pool;
    std::uint64_t offset;
    std::uint64_t slice_bytes;
    std::uint64_t bytes;
};
static_assert(sizeof(PointerRecord) <= sizeof(CUmemPoolPtrExportData));

Pool* pool_of(CUmemoryPool handle) {
    return reinterpret_cast<Pool*>(handle);
}
CUmemoryPool handle_of(Pool* pool) {
    return reinterpret_cast<CUmemoryPool>(pool);
}

Device* find_device(Driver& d, CUdevice ordinal) {
    return ordinal >= 0 && static_cast<std::size_t>(ordinal) < d.devices.size()
               ? d.devices[static_cast<std::size_t>(ordinal)]
               : nullptr;
}

CUresult allocate(Driver& d, CUdeviceptr* address, std::size_t bytes, Pool* pool, CUstream handle) {
    const StreamRef ref = simgpu::find_stream(d, handle);
    SIM_TRY(ref.result);
    if (address == nullptr || bytes == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Pool& from = pool != nullptr ? *pool : *ref.stream->context->device->current_pool;
    if (from.imported) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const Made made =
        simgpu::new_device_range(d, *from.device, nullptr, MemoryKind::pooled, bytes, 0);
    SIM_TRY(made.result);
    made.range->pool = &from;
    from.used_bytes += made.range->block_bytes;
    from.used_high = std::max(from.used_high, from.used_bytes);
    *address = made.range->base;
    return CUDA_SUCCESS;
}

}  // namespace

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice ordinal) {
    SIM_ENTER(cuDeviceGetDefaultMemPool);
    const Device* device = find_device(d, ordinal);
    if (device == nullptr) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *pool = handle_of(device->default_pool);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice ordinal) {
    SIM_ENTER(cuDeviceGetMemPool);
    const Device* device = find_device(d, ordinal);
    if (device == nullptr) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *pool = handle_of(device->current_pool);
    return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice ordinal, CUmemoryPool pool) {
    SIM_ENTER(cuDeviceSetMemPool);
    Device* device = find_device(d, ordinal);
    if (device == nullptr || pool == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    device->current_pool = pool_of(pool);
    return CUDA_SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr* address, std::size_t bytes, CUstream stream) {
    SIM_ENTER(cuMemAllocAsync);
    return allocate(d, address, bytes, nullptr, stream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, std::size_t bytes, CUmemoryPool pool,
                                 CUstream stream) {
    SIM_ENTER(cuMemAllocFromPoolAsync);
    if (pool == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return allocate(d, address, bytes, pool_of(pool), stream);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
    SIM_ENTER(cuMemFreeAsync);
    const StreamRef ref = simgpu::find_stream(d, handle);
    SIM_TRY(ref.result);
    const Range* range = d.memory.find(address);
    if (range == nullptr || range->base != address || range->pool == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    auto op = std::make_shared<Op>();
    op->effect = [&d, address, id = range->buffer_id] {
        simgpu::Guard guard_effect(d.mutex);
        Range* now = d.memory.find(address);
        if (now != nullptr && now->buffer_id == id) {
            simgpu::release_range(d, *now);
        }
        return CUDA_SUCCESS;
    };
    d.scheduler.enqueue(*ref.stream, op);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolCreate(CUmemoryPool* handle, const CUmemPoolProps* properties) {
    SIM_ENTER(cuMemPoolCreate);
    if (handle == nullptr || properties == nullptr ||
        properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Device* device = find_device(d, properties->location.id);
    if (device == nullptr) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (properties->handleTypes > CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    auto* pool = new Pool;
    pool->device = device;
    pool->handle_types = static_cast<unsigned>(properties->handleTypes);
    pool->id = ++d.last_id;
    d.pools.push_back(pool);
    *handle = handle_of(pool);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool handle) {
    SIM_ENTER(cuMemPoolDestroy);
    Pool* pool = pool_of(handle);
    if (pool == nullptr || pool->is_default) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (pool->device->current_pool == pool) {
        pool->device->current_pool = pool->device->default_pool;
    }
    // The object stays: memory that is still allocated refers to it.
    return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool, std::size_t) {
    SIM_ENTER(cuMemPoolTrimTo);
    (void)d;
    return CUDA_SUCCESS;  // freed memory is given back at once anyway
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute which, void* value) {
    SIM_ENTER(cuMemPoolGetAttribute);
    const Pool& pool = *pool_of(handle);
    const auto store = [value](std::uint64_t number) { memcpy(value, &number, sizeof number); };
    switch (which) {
        case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: store(pool.release_threshold); return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: store(pool.used_bytes); return CUDA_SUCCESS;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH: store(pool.used_high); return CUDA_SUCCESS;
        default: *static_cast<int*>(value) = 1; return CUDA_SUCCESS;
    }
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute which, void* value) {
    SIM_ENTER(cuMemPoolSetAttribute);
    if (which == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
        memcpy(&pool_of(handle)->release_threshold, value, sizeof(std::uint64_t));
    }
    return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* access, std::size_t count) {
    SIM_ENTER(cuMemPoolSetAccess);
    for (std::size_t index = 0; index < count; ++index) {
        const bool other = access[index].location.id != pool_of(handle)->device->ordinal;
        if (other && !d.model.machine().peer_access) {
            return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
        }
        // What another GPU has to map as well is dear.
        if (other) {
            const Device& device = *pool_of(handle)->device;
            const simgpu::Current current = simgpu::current_context(d);
            entry.costs(d.model.calls().pool_open_peer - d.model.calls().pool_open +
                        (current.context != nullptr
                             ? simgpu::price_of_pair(d, device, *current.context)
                             : 0) +
                        (d.had_pool ? 0 : d.model.calls().pool_first));
            d.had_pool = true;
        }
    }
    return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool, CUmemLocation*) {
    SIM_ENTER(cuMemPoolGetAccess);
    (void)d;
    *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolExportToShareableHandle(void* shareable, CUmemoryPool handle,
                                          CUmemAllocationHandleType type, unsigned long long) {
    SIM_ENTER(cuMemPoolExportToShareableHandle);
    SIM_TRY(simgpu::refuse_during_capture(d));
    const Pool& pool = *pool_of(handle);
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        (pool.handle_types & static_cast<unsigned>(type)) == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const PoolRecord record{kPoolMagic, getpid(), pool.device->physical, 0, pool.id};
    const int fd = memfd_create("simgpu-pool", MFD_CLOEXEC);
    if (fd < 0 || ::write(fd, &record, sizeof record) != sizeof record) {
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    *static_cast<int*>(shareable) = fd;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool* handle, void* shareable,
                                            CUmemAllocationHandleType type, unsigned long long) {
    SIM_ENTER(cuMemPoolImportFromShareableHandle);
    const int fd = static_cast<int>(reinterpret_cast<std::intptr_t>(shareable));
    PoolRecord record{};
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        pread(fd, &record, sizeof record, 0) != sizeof record || record.magic != kPoolMagic) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Device* const on = simgpu::exporters_device(d, record.physical_device);
    if (on == nullptr) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    entry.costs(d.model.calls().pool_open);
    auto* pool = new Pool;
    pool->device = on;
    pool->imported = true;
    pool->id = record.id;
    d.pools.push_back(pool);
    *handle = handle_of(pool);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData* data, CUdeviceptr address) {
    SIM_ENTER(cuMemPoolExportPointer);
    Range* range = d.memory.find(address);
    if (data == nullptr || range == nullptr || range->pool == nullptr ||
        range->pool->handle_types == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    range->exported = true;
    const PointerRecord record{
        kPoolMagic,         getpid(),
        range->slice.fd,    static_cast<std::uint32_t>(range->base - range->block),
        range->pool->id,    range->slice.offset,
        range->slice.bytes, range->bytes};
    memset(data, 0, sizeof *data);
    memcpy(data, &record, sizeof record);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolImportPointer(CUdeviceptr* address, CUmemoryPool handle,
                                CUmemPoolPtrExportData* data) {
    SIM_ENTER(cuMemPoolImportPointer);
    Pool& pool = *pool_of(handle);
    PointerRecord record{};
    memcpy(&record, data, sizeof record);
    if (!pool.imported || record.magic != kPoolMagic || record.pool != pool.id) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", record.process, record.fd);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return CUDA_ERROR_MAP_FAILED;
    }
    const Slice slice{fd, record.offset, static_cast<std::size_t>(record.slice_bytes)};
    const Made made = simgpu::map_range(d, *pool.device, MemoryKind::pooled, slice,
                                        static_cast<std::size_t>(record.bytes), record.base_offset);
    close(fd);
    SIM_TRY(made.result);
    made.range->pool = &pool;
    made.range->kind = MemoryKind::imported;
    *address = made.range->base;
    return CUDA_SUCCESS;
}
