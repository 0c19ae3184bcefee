// SPDX-License-Identifier: BSD-3-Clause
// Virtual memory management: addresses and physical memory apart. Physical memory is a memfd of its
// own, so that its file descriptor can be exported as it is; the device it lies on is written in
// the memfd's name.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <unordered_set>

#include "entry.hpp"
#include "memory.hpp"

namespace simgpu {

struct Generic {
    int fd = -1;
    std::size_t bytes = 0;
    Device* device = nullptr;
    CUmemAllocationProp properties{};
    int references = 1;  // handles and mappings
    bool own = true;     // counts against this device's memory
};

unsigned handle_types(const Generic& generic) {
    return static_cast<unsigned>(generic.properties.requestedHandleTypes);
}

}  // namespace simgpu

namespace {

using simgpu::Address;
using simgpu::Device;
using simgpu::Driver;
using simgpu::Generic;
using simgpu::kLargeGranule;
using simgpu::MemoryKind;
using simgpu::Range;
using simgpu::Slice;

struct Vmm {  // guarded by the driver's lock
    std::unordered_set<const void*> live;
    std::map<Address, std::size_t> reserved;
};
Vmm& vmm() {
    static auto* state = new Vmm;
    return *state;
}

Generic* find_handle(CUmemGenericAllocationHandle handle) {
    auto* generic = reinterpret_cast<Generic*>(static_cast<std::uintptr_t>(handle));
    return vmm().live.count(generic) != 0 ? generic : nullptr;
}

CUmemGenericAllocationHandle handle_of(Generic* generic) {
    return reinterpret_cast<std::uintptr_t>(generic);
}

void let_go(Generic& generic) {
    if (--generic.references == 0) {
        if (generic.own) {
            generic.device->used_bytes -= generic.bytes;
        }
        close(generic.fd);
        vmm().live.erase(&generic);
        delete &generic;
    }
}

Device* find_device(Driver& d, int ordinal) {
    return ordinal >= 0 && static_cast<std::size_t>(ordinal) < d.devices.size()
               ? d.devices[static_cast<std::size_t>(ordinal)]
               : nullptr;
}

CUresult check_properties(const CUmemAllocationProp* properties) {
    if (properties == nullptr || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
        properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return properties->requestedHandleTypes > CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
               ? CUDA_ERROR_NOT_SUPPORTED
               : CUDA_SUCCESS;
}

bool in_reservation(Address address, std::size_t bytes) {
    auto next = vmm().reserved.upper_bound(address);
    if (next == vmm().reserved.begin()) {
        return false;
    }
    const auto& [start, size] = *std::prev(next);
    return address - start < size && bytes <= size - (address - start);
}

}  // namespace

CUresult cuMemGetAllocationGranularity(std::size_t* bytes, const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags) {
    SIM_ENTER(cuMemGetAllocationGranularity);
    (void)d;
    SIM_TRY(check_properties(properties));
    *bytes = kLargeGranule;
    return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                     const CUmemAllocationProp* properties, unsigned long long flags) {
    SIM_ENTER(cuMemCreate);
    SIM_TRY(check_properties(properties));
    Device* device = find_device(d, properties->location.id);
    if (device == nullptr || bytes == 0 || bytes % kLargeGranule != 0 || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (device->used_bytes + bytes > d.settings.device_bytes) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    char name[32];
    snprintf(name, sizeof name, "simgpu-vmm-%d", device->physical);
    const int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    device->used_bytes += bytes;
    auto* generic = new Generic{fd, bytes, device, *properties, 1, true};
    vmm().live.insert(generic);
    *handle = handle_of(generic);
    return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    SIM_ENTER(cuMemRelease);
    (void)d;
    Generic* generic = find_handle(handle);
    if (generic == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    let_go(*generic);
    return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* address, std::size_t bytes, std::size_t alignment,
                             CUdeviceptr, unsigned long long flags) {
    SIM_ENTER(cuMemAddressReserve);
    if (address == nullptr || bytes == 0 || bytes % kLargeGranule != 0 || flags != 0 ||
        alignment > kLargeGranule) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    // Addresses belong to no device yet; those of the first window serve all.
    const Address start = d.arena.take_addresses(0, bytes);
    if (start == 0) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    vmm().reserved[start] = bytes;
    *address = start;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr address, std::size_t bytes) {
    SIM_ENTER(cuMemAddressFree);
    const auto found = vmm().reserved.find(address);
    if (found == vmm().reserved.end() || found->second != bytes ||
        d.memory.overlaps(address, bytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    vmm().reserved.erase(found);
    d.arena.give_addresses(0, address, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, std::size_t bytes, std::size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
    SIM_ENTER(cuMemMap);
    Generic* generic = find_handle(handle);
    if (generic == nullptr || offset != 0 || flags != 0 || bytes != generic->bytes ||
        address % kLargeGranule != 0 || !in_reservation(address, bytes) ||
        d.memory.overlaps(address, bytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const Slice slice{generic->fd, 0, bytes};
    if (!d.arena.map(address, slice)) {
        return CUDA_ERROR_MAP_FAILED;
    }
    ++generic->references;
    Range range;
    range.base = address;
    range.bytes = bytes;
    range.kind = MemoryKind::mapped;
    range.device = generic->device;
    range.block = address;
    range.block_bytes = bytes;
    range.slice = slice;
    range.generic = generic;
    range.accessible = false;
    d.memory.insert(range);
    return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr address, std::size_t bytes) {
    SIM_ENTER(cuMemUnmap);
    Range* first = d.memory.find(address);
    if (first == nullptr || first->base != address || first->kind != MemoryKind::mapped ||
        bytes == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    d.scheduler.wait_for_all();
    const Address end = address + bytes;
    while (address < end) {
        Range* range = d.memory.find(address);
        if (range == nullptr || range->kind != MemoryKind::mapped || range->base != address) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        Generic* generic = range->generic;
        address += range->bytes;
        simgpu::release_range(d, *range);
        let_go(*generic);
    }
    return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc* access,
                        std::size_t count) {
    SIM_ENTER(cuMemSetAccess);
    if (access == nullptr || count == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const Address end = address + bytes;
    while (address < end) {
        Range* range = d.memory.find(address);
        if (range == nullptr || range->kind != MemoryKind::mapped) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        for (std::size_t index = 0; index < count; ++index) {
            if (access[index].location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
                return CUDA_ERROR_NOT_SUPPORTED;
            }
            if (access[index].location.id != range->device->ordinal &&
                !d.model.machine().peer_access) {
                return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
            }
            if (const simgpu::Current current = simgpu::current_context(d);
                current.context != nullptr && !range->accessible) {
                entry.costs(simgpu::price_of_pair(d, *range->device, *current.context));
            }
            range->accessible = access[index].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        }
        address = range->base + range->bytes;
    }
    return CUDA_SUCCESS;
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                        CUdeviceptr address) {
    SIM_ENTER(cuMemGetAccess);
    const Range* range = d.memory.find(address);
    if (flags == nullptr || location == nullptr || range == nullptr ||
        range->kind != MemoryKind::mapped) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *flags = range->accessible ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : 0;
    return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags) {
    SIM_ENTER(cuMemExportToShareableHandle);
    (void)d;
    Generic* generic = find_handle(handle);
    if (generic == nullptr || flags != 0 || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        generic->properties.requestedHandleTypes != type) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const int fd = dup(generic->fd);
    if (fd < 0) {
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    *static_cast<int*>(shareable) = fd;
    return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shareable,
                                        CUmemAllocationHandleType type) {
    SIM_ENTER(cuMemImportFromShareableHandle);
    const int fd = static_cast<int>(reinterpret_cast<std::intptr_t>(shareable));
    char link[64], name[64] = {};
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    struct stat about {};
    int physical = -1;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        readlink(link, name, sizeof name - 1) <= 0 ||
        sscanf(name, "/memfd:simgpu-vmm-%d", &physical) != 1 || fstat(fd, &about) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Device* const on = simgpu::exporters_device(d, physical);
    if (on == nullptr) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    entry.costs(d.model.calls().vmm_open);
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = type;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, on->ordinal};
    auto* generic =
        new Generic{dup(fd), static_cast<std::size_t>(about.st_size), on, properties, 1, false};
    vmm().live.insert(generic);
    *handle = handle_of(generic);
    return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                CUmemGenericAllocationHandle handle) {
    SIM_ENTER(cuMemGetAllocationPropertiesFromHandle);
    (void)d;
    const Generic* generic = find_handle(handle);
    if (generic == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *properties = generic->properties;
    return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
    SIM_ENTER(cuMemRetainAllocationHandle);
    Range* range = d.memory.find(reinterpret_cast<Address>(address));
    if (range == nullptr || range->kind != MemoryKind::mapped) {
        return CUDA_ERROR_INVALID_VALUE;  // memory of cuMemAlloc has no handle
    }
    ++range->generic->references;
    *handle = handle_of(range->generic);
    return CUDA_SUCCESS;
}

CUresult cuMemGetHandleForAddressRange(void*, CUdeviceptr, std::size_t, CUmemRangeHandleType,
                                       unsigned long long) {
    SIM_ENTER(cuMemGetHandleForAddressRange);
    (void)d;
    return CUDA_ERROR_NOT_SUPPORTED;  // DMA_BUF_SUPPORTED is 0: GPUDirect RDMA is not modelled
}

CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget,
                                    CUflushGPUDirectRDMAWritesScope) {
    SIM_ENTER(cuFlushGPUDirectRDMAWrites);
    return simgpu::current_context(d).result;
}
