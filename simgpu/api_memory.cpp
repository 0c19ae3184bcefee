// SPDX-License-Identifier: BSD-3-Clause
// Allocation of device, page-locked and managed memory, and registration of the program's own host
// memory.
#include <algorithm>

#include "entry.hpp"
#include "memory.hpp"

namespace {

using simgpu::Address;
using simgpu::Context;
using simgpu::Current;
using simgpu::current_context;
using simgpu::Driver;
using simgpu::Made;
using simgpu::MemoryKind;
using simgpu::Range;

// What calls that allocate or free begin with.
Current begin_set_up(Driver& d) {
    const CUresult refused = simgpu::refuse_during_capture(d);
    return refused != CUDA_SUCCESS ? Current{nullptr, refused} : current_context(d);
}

CUresult allocate(Driver& d, Context& context, CUdeviceptr* address, std::size_t bytes) {
    if (address == nullptr || bytes == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const Made made = simgpu::new_device_range(d, *context.device, &context, MemoryKind::device,
                                               bytes, d.settings.suballocation);
    SIM_TRY(made.result);
    *address = made.range->base;
    return CUDA_SUCCESS;
}

CUresult allocate_host(Driver& d, Context& context, void** address, std::size_t bytes,
                       unsigned flags) {
    if (address == nullptr || bytes == 0 || flags > 7) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const Made made = simgpu::new_host_range(d, context, MemoryKind::pinned, bytes, flags);
    SIM_TRY(made.result);
    *address = reinterpret_cast<void*>(made.range->base);
    return CUDA_SUCCESS;
}

Range* host_range(Driver& d, const void* address) {
    Range* range = d.memory.find(reinterpret_cast<Address>(address));
    const bool host = range != nullptr &&
                      (range->kind == MemoryKind::pinned || range->kind == MemoryKind::registered);
    return host ? range : nullptr;
}

}  // namespace

#define SIM_SET_UP(name)                          \
    const Current found_##name = begin_set_up(d); \
    SIM_TRY(found_##name.result);                 \
    [[maybe_unused]] Context& name = *found_##name.context

CUresult cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes) {
    SIM_ENTER(cuMemGetInfo_v2);
    const Current current = current_context(d);
    SIM_TRY(current.result);
    *total_bytes = d.settings.device_bytes;
    *free_bytes = d.settings.device_bytes - current.context->device->used_bytes;
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr* address, std::size_t bytes) {
    SIM_ENTER(cuMemAlloc_v2);
    SIM_SET_UP(context);
    entry.costs(d.model.calls().allocate);
    return allocate(d, context, address, bytes);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* address, std::size_t* pitch, std::size_t width_bytes,
                            std::size_t height, unsigned element_bytes) {
    SIM_ENTER(cuMemAllocPitch_v2);
    SIM_SET_UP(context);
    if (pitch == nullptr || (element_bytes != 4 && element_bytes != 8 && element_bytes != 16)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    entry.costs(d.model.calls().allocate);
    *pitch = simgpu::round_up(width_bytes, 512);
    return allocate(d, context, address, *pitch * height);
}

CUresult cuMemFree_v2(CUdeviceptr address) {
    SIM_ENTER(cuMemFree_v2);
    if (address == 0) {
        return CUDA_SUCCESS;
    }
    SIM_SET_UP(context);
    const Range* range = d.memory.find(address);
    if (range == nullptr || range->base != address ||
        (range->kind != MemoryKind::device && range->kind != MemoryKind::managed &&
         range->pool == nullptr)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    // Freeing synchronises: work on the memory may be in any stream.
    d.scheduler.wait_for_all();
    if (Range* still_there = d.memory.find(address)) {
        simgpu::release_range(d, *still_there);
    }
    return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address) {
    SIM_ENTER(cuMemGetAddressRange_v2);
    const Range* range = d.memory.find(address);
    if (range == nullptr) {
        return CUDA_ERROR_NOT_FOUND;
    }
    if (base != nullptr) {
        *base = range->base;
    }
    if (bytes != nullptr) {
        *bytes = range->bytes;
    }
    return CUDA_SUCCESS;
}

CUresult cuMemAllocManaged(CUdeviceptr* address, std::size_t bytes, unsigned flags) {
    SIM_ENTER(cuMemAllocManaged);
    SIM_SET_UP(context);
    if (address == nullptr || bytes == 0 ||
        (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const Made made = simgpu::new_host_range(d, context, MemoryKind::managed, bytes, 0);
    SIM_TRY(made.result);
    *address = made.range->base;
    return CUDA_SUCCESS;
}

CUresult cuMemAllocHost_v2(void** address, std::size_t bytes) {
    SIM_ENTER(cuMemAllocHost_v2);
    SIM_SET_UP(context);
    entry.costs(d.model.calls().register_host);
    return allocate_host(d, context, address, bytes, 0);
}

CUresult cuMemHostAlloc(void** address, std::size_t bytes, unsigned flags) {
    SIM_ENTER(cuMemHostAlloc);
    SIM_SET_UP(context);
    entry.costs(d.model.calls().register_host);
    return allocate_host(d, context, address, bytes, flags);
}

CUresult cuMemFreeHost(void* address) {
    SIM_ENTER(cuMemFreeHost);
    SIM_SET_UP(context);
    Range* range = host_range(d, address);
    if (range == nullptr || range->kind != MemoryKind::pinned ||
        range->base != reinterpret_cast<Address>(address)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    d.scheduler.wait_for_all();
    simgpu::release_range(d, *range);
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* device_address, void* address, unsigned flags) {
    SIM_ENTER(cuMemHostGetDevicePointer_v2);
    SIM_TRY(current_context(d).result);
    if (device_address == nullptr || flags != 0 || host_range(d, address) == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *device_address = reinterpret_cast<CUdeviceptr>(address);
    return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned* flags, void* address) {
    SIM_ENTER(cuMemHostGetFlags);
    const Range* range = host_range(d, address);
    if (range == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    // Under unified addressing all page-locked memory is portable and mapped.
    *flags = range->host_flags | CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
    return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void* address, std::size_t bytes, unsigned flags) {
    SIM_ENTER(cuMemHostRegister_v2);
    SIM_SET_UP(context);
    const auto base = reinterpret_cast<Address>(address);
    if (address == nullptr || bytes == 0 || d.arena.contains(base)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (d.memory.overlaps(base, bytes)) {
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    }
    entry.costs(d.model.calls().register_host);
    Range range;
    range.base = base;
    range.bytes = bytes;
    range.kind = MemoryKind::registered;
    range.device = context.device;
    range.context = &context;
    range.host_flags = flags;
    d.memory.insert(range);
    return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void* address) {
    SIM_ENTER(cuMemHostUnregister);
    SIM_SET_UP(context);
    Range* range = host_range(d, address);
    if (range == nullptr || range->kind != MemoryKind::registered ||
        range->base != reinterpret_cast<Address>(address)) {
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    }
    d.scheduler.wait_for_all();
    simgpu::release_range(d, *range);
    return CUDA_SUCCESS;
}
