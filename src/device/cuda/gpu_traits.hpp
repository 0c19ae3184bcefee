// SPDX-License-Identifier: BSD-3-Clause
//
// What the driver and the system say of a GPU without a measurement (model/estimate.hpp). Written
// once for all who ask: the library through Driver::call, the tools through pointers of their own.
#pragma once

#include "device/cuda/driver_abi.h"
#include "model/estimate.hpp"

#include <string_view>

namespace gantry::device::cuda {

// Raw rate of a PCI device's link, one direction, from what sysfs says of it: its fastest speed
// ("32.0 GT/s PCIe", for it slows down when idle) and its width ("16"). 0 where either is not said.
double link_bytes_per_second(std::string_view speed, std::string_view width);
// Of the device with that number ("0000:18:00.0").
double link_of_pci_device(std::string_view bus_id);

// `cu`: the driver's functions by their names. `call(function, arguments...)`: the result, and
// CUDA_ERROR_NOT_SUPPORTED for a function that is not there. What is refused is not told, and the
// rate of its memory is left out (read_memory_rate).
template <class Functions, class Call>
model::Traits traits_of(Functions& cu, Call call, CUdevice device) {
    model::Traits traits;
    char name[256] = {};
    if (call(cu.cuDeviceGetName, name, static_cast<int>(sizeof name - 1), device) == CUDA_SUCCESS)
        traits.name = name;
    std::size_t memory = 0;
    if (call(cu.cuDeviceTotalMem_v2, &memory, device) == CUDA_SUCCESS) traits.memory = memory;
    const auto attribute = [&](CUdevice_attribute which) {
        int value = 0;
        return call(cu.cuDeviceGetAttribute, &value, which, device) == CUDA_SUCCESS ? value : 0;
    };
    traits.compute_major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    traits.compute_minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    traits.copy_engines = attribute(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
    char bus_id[32] = {};
    if (call(cu.cuDeviceGetPCIBusId, bus_id, static_cast<int>(sizeof bus_id), device) ==
        CUDA_SUCCESS)
        traits.host_link_bytes_per_second = link_of_pci_device(bus_id);
    call(cu.cuDeviceGetCount, &traits.gpus);
    if (traits.gpus < 2) return traits;
    traits.peer_access = traits.peer_atomics = false;
    for (CUdevice other = 0; other < traits.gpus; ++other) {
        int can = 0, atomics = 0;
        if (other == device ||
            call(cu.cuDeviceCanAccessPeer, &can, device, other) != CUDA_SUCCESS || can == 0)
            continue;
        traits.peer_access = true;
        if (call(cu.cuDeviceGetP2PAttribute, &atomics,
                 CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, device, other) == CUDA_SUCCESS)
            traits.peer_atomics = traits.peer_atomics || atomics != 0;
    }
    return traits;
}

// The driver takes 0.5 to 2 ms to tell a clock (H200, 580.159): only for who estimates.
template <class Functions, class Call>
void read_memory_rate(Functions& cu, Call call, CUdevice device, model::Traits& traits) {
    int kilohertz = 0, bits = 0;
    if (call(cu.cuDeviceGetAttribute, &kilohertz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, device) !=
            CUDA_SUCCESS ||
        call(cu.cuDeviceGetAttribute, &bits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, device) !=
            CUDA_SUCCESS)
        return;
    constexpr double kTransfersOfCycle = 2;
    traits.memory_bytes_per_second = kTransfersOfCycle * 1e3 * kilohertz * bits / 8;
}

}  // namespace gantry::device::cuda
