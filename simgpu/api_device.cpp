// SPDX-License-Identifier: BSD-3-Clause
// Devices: identity is that of the physical ordinal, so that UUIDs and PCI ids agree between
// processes whatever CUDA_VISIBLE_DEVICES says.
#include <stdio.h>
#include <string.h>

#include <algorithm>

#include "entry.hpp"

namespace {

using simgpu::Device;
using simgpu::Driver;

Device* find_device(Driver& d, CUdevice ordinal) {
    return ordinal >= 0 && static_cast<std::size_t>(ordinal) < d.devices.size()
               ? d.devices[static_cast<std::size_t>(ordinal)]
               : nullptr;
}

int pci_bus(const Device& device) {
    return 0x10 + device.physical;
}

CUuuid uuid_of(const Device& device) {
    CUuuid uuid{};
    memcpy(uuid.bytes, simgpu::uuid_of(device.physical).data(), sizeof uuid.bytes);
    return uuid;
}

bool peers(Driver& d, const Device& a, const Device& b) {
    return &a != &b && d.model.machine().peer_access;
}

// A copy inside a GPU reads and writes its memory, at 83 % of the raw rate (an H200); two bits a
// cycle and pin.
constexpr int kMemoryKilohertz = 3'200'000;
int memory_bits(const gantry::model::Gpu& gpu) {
    const double raw = 2 * gpu.d2d.rate.peak() / 0.83;
    return static_cast<int>(raw * 8 / (2e3 * kMemoryKilohertz));
}

// NVLink, over which atomic operations work, is what is much faster than the way to the host.
bool has_nvlink(const gantry::model::Gpu& gpu) {
    return gpu.peer.rate.peak() > 2 * gpu.h2d.rate.peak();
}

int attribute(Driver& d, const Device& device, CUdevice_attribute which) {
    const gantry::model::Gpu& gpu = d.model.machine().gpu;
    const bool modern = gpu.compute_major >= 7;
    switch (which) {
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: return 1024;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: return 64;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: return 0x7fffffff;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: return 65535;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: return 49152;
        case CU_DEVICE_ATTRIBUTE_WARP_SIZE: return 32;
        case CU_DEVICE_ATTRIBUTE_MAX_PITCH: return 0x7fffffff;
        case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK: return 65536;
        case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: return 1'980'000;
        case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: return kMemoryKilohertz;
        case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: return memory_bits(gpu);
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: return modern ? 132 : 14;
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: return 2048;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR: return 32;
        case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: return gpu.copy_engines;
        case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: return pci_bus(device);
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return gpu.compute_major;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return gpu.compute_minor;
        case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
        case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
        case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
        case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
        case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
        case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
        case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
        case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1:
        case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1:
        case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
        case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR:
        case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
        case CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED: return 1;
        case CU_DEVICE_ATTRIBUTE_MPS_ENABLED: return d.settings.mps ? 1 : 0;
        case CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES:
            return CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:
        case CU_DEVICE_ATTRIBUTE_NUMA_ID: return -1;
        default: return 0;  // what is not modelled is absent
    }
}

}  // namespace

#define SIM_DEVICE(name, ordinal)                 \
    Device* const name = find_device(d, ordinal); \
    if (name == nullptr) return CUDA_ERROR_INVALID_DEVICE

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    SIM_ENTER(cuDeviceGet);
    SIM_DEVICE(found, ordinal);
    *device = found->ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
    SIM_ENTER(cuDeviceGetCount);
    *count = static_cast<int>(d.devices.size());
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
    SIM_ENTER(cuDeviceGetName);
    SIM_DEVICE(found, device);
    snprintf(name, static_cast<std::size_t>(std::max(length, 0)), "Simulated GPU (%s)",
             d.model.machine().name.c_str());
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
    SIM_ENTER(cuDeviceGetUuid);
    SIM_DEVICE(found, device);
    *uuid = uuid_of(*found);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
    SIM_ENTER(cuDeviceGetUuid_v2);
    SIM_DEVICE(found, device);
    *uuid = uuid_of(*found);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
    SIM_ENTER(cuDeviceTotalMem_v2);
    SIM_DEVICE(found, device);
    *bytes = d.settings.device_bytes;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice device) {
    SIM_ENTER(cuDeviceGetAttribute);
    SIM_DEVICE(found, device);
    *value = attribute(d, *found, which);
    return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
    SIM_ENTER(cuDeviceComputeCapability);
    SIM_DEVICE(found, device);
    *major = d.model.machine().gpu.compute_major;
    *minor = d.model.machine().gpu.compute_minor;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* pci_bus_id) {
    SIM_ENTER(cuDeviceGetByPCIBusId);
    unsigned domain = 0, bus = 0, slot = 0;
    if (sscanf(pci_bus_id, "%x:%x:%x", &domain, &bus, &slot) != 3) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (const Device* candidate : d.devices) {
        if (domain == 0 && slot == 0 && bus == static_cast<unsigned>(pci_bus(*candidate))) {
            *device = candidate->ordinal;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetPCIBusId(char* pci_bus_id, int length, CUdevice device) {
    SIM_ENTER(cuDeviceGetPCIBusId);
    SIM_DEVICE(found, device);
    snprintf(pci_bus_id, static_cast<std::size_t>(std::max(length, 0)), "0000:%02X:00.0",
             static_cast<unsigned>(pci_bus(*found)));
    return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
    SIM_ENTER(cuDeviceCanAccessPeer);
    SIM_DEVICE(a, device);
    SIM_DEVICE(b, peer);
    *can = peers(d, *a, *b) ? 1 : 0;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute which, CUdevice source,
                                 CUdevice target) {
    SIM_ENTER(cuDeviceGetP2PAttribute);
    SIM_DEVICE(a, source);
    SIM_DEVICE(b, target);
    if (a == b) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    bool has = which != CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK && peers(d, *a, *b);
    if (which == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED) {
        has = has && has_nvlink(d.model.machine().gpu);
    }
    *value = has ? 1 : 0;
    return CUDA_SUCCESS;
}
