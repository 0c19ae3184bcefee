// SPDX-License-Identifier: BSD-3-Clause
// Pointer attributes. The two forms fail differently: asking one attribute of memory the driver
// does not know is INVALID_VALUE, asking several succeeds with zeros. BUFFER_ID is never given
// twice.
#include <string.h>

#include <algorithm>

#include "entry.hpp"
#include "pools.hpp"

namespace {

using simgpu::Driver;
using simgpu::MemoryKind;
using simgpu::Range;

unsigned allowed_handle_types(const Range& range);

template <class T>
void store(void* data, T value) {
    memcpy(data, &value, sizeof value);
}

bool legacy_ipc_capable(Driver& d, const Range& range) {
    return range.kind == MemoryKind::device && d.model.machine().ipc;
}

// What an attribute of unknown memory reads as in the plural call.
CUresult store_nothing(CUpointer_attribute which, void* data) {
    switch (which) {
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        case CU_POINTER_ATTRIBUTE_MAPPED:
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: store(data, 0u); return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: store(data, -2); return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_P2P_TOKENS: return CUDA_ERROR_INVALID_VALUE;
        default: store(data, std::uint64_t{0}); return CUDA_SUCCESS;
    }
}

CUresult read(Driver& d, const Range& range, CUdeviceptr address, CUpointer_attribute which,
              void* data) {
    const bool managed = range.kind == MemoryKind::managed;
    const bool device = range.on_device();
    switch (which) {
        case CU_POINTER_ATTRIBUTE_CONTEXT:
            store(data, simgpu::handle_of(range.context));
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            store(data, device || managed ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST);
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: store(data, address); return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_HOST_POINTER:
            if (device) {
                return CUDA_ERROR_INVALID_VALUE;
            }
            store(data, address);
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
            store(data, range.sync_memops ? 1u : 0u);
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_BUFFER_ID: store(data, range.buffer_id); return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_IS_MANAGED: store(data, managed ? 1u : 0u); return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            // Of what is mapped from a hidden GPU, the one that uses it.
            store(data, std::max(range.device->ordinal, 0));
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
            store(data, legacy_ipc_capable(d, range) ? 1u : 0u);
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
            store(data, static_cast<CUdeviceptr>(range.base));
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: store(data, range.bytes); return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_MAPPED: store(data, 1u); return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
            store(data, allowed_handle_types(range));
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: store(data, 0u); return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
            store(data, range.accessible ? 3u : 0u);
            return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: store(data, range.pool); return CUDA_SUCCESS;
        case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
            store(data, range.slice.offset + range.buffer_id);
            return CUDA_SUCCESS;
        default: return CUDA_ERROR_INVALID_VALUE;
    }
}

// For memory of a pool 0, as an H200's driver answers: whoever wants to know asks the pool.
unsigned allowed_handle_types(const Range& range) {
    if (range.pool != nullptr || range.kind != MemoryKind::mapped) return 0;
    return simgpu::handle_types(*range.generic);
}

}  // namespace

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute which, CUdeviceptr address) {
    SIM_ENTER(cuPointerGetAttribute);
    if (data == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const Range* range = d.memory.find(address);
    entry.costs(range != nullptr ? d.model.calls().classify_device : d.model.calls().classify_host);
    return range != nullptr ? read(d, *range, address, which, data) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* which, void** data,
                                CUdeviceptr address) {
    SIM_ENTER(cuPointerGetAttributes);
    if (count == 0 || which == nullptr || data == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const Range* range = d.memory.find(address);
    entry.costs(range != nullptr ? d.model.calls().classify_device : d.model.calls().classify_host);
    for (unsigned index = 0; index < count; ++index) {
        if (range == nullptr ||
            read(d, *range, address, which[index], data[index]) != CUDA_SUCCESS) {
            SIM_TRY(store_nothing(which[index], data[index]));
        }
    }
    return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute which, CUdeviceptr address) {
    SIM_ENTER(cuPointerSetAttribute);
    SIM_TRY(simgpu::refuse_during_capture(d));
    Range* range = d.memory.find(address);
    if (value == nullptr || which != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || range == nullptr ||
        !range->on_device()) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    unsigned on = 0;
    memcpy(&on, value, sizeof on);
    range->sync_memops = on != 0;
    return CUDA_SUCCESS;
}

CUresult cuMemRangeGetAttribute(void* data, std::size_t data_bytes, int, CUdeviceptr address,
                                std::size_t bytes) {
    SIM_ENTER(cuMemRangeGetAttribute);
    const Range* range = d.memory.find(address);
    if (range == nullptr || range->kind != MemoryKind::managed ||
        !d.memory.covers(address, bytes) || data_bytes < sizeof(int)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    store(data, -2);  // no preferred or prefetched location: migration is not modelled
    return CUDA_SUCCESS;
}

CUresult cuMemAdvise(CUdeviceptr address, std::size_t bytes, int, CUdevice) {
    SIM_ENTER(cuMemAdvise);
    return d.memory.covers(address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAdvise_v2(CUdeviceptr address, std::size_t bytes, int, CUmemLocation) {
    SIM_ENTER(cuMemAdvise_v2);
    return d.memory.covers(address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPrefetchAsync(CUdeviceptr address, std::size_t bytes, CUdevice, CUstream stream) {
    SIM_ENTER(cuMemPrefetchAsync);
    SIM_TRY(simgpu::find_stream(d, stream).result);
    return d.memory.covers(address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, std::size_t bytes, CUmemLocation, unsigned,
                               CUstream stream) {
    SIM_ENTER(cuMemPrefetchAsync_v2);
    SIM_TRY(simgpu::find_stream(d, stream).result);
    return d.memory.covers(address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
