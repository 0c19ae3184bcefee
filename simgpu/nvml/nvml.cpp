// SPDX-License-Identifier: BSD-3-Clause
//
// As much of NVML as mpiexec asks: the devices of SIMGPU's `dev`, all of them, whatever
// CUDA_VISIBLE_DEVICES says, with the UUIDs and PCI addresses that the simulated driver gives them.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace {

constexpr int kSuccess = 0, kInvalidArgument = 2, kNotFound = 6;

struct PciInfo {
    char legacy_bus_id[16];
    unsigned domain, bus, device, pci_device, pci_subsystem;
    char bus_id[32];
};

unsigned devices() {
    const char* settings = getenv("SIMGPU");
    const char* found = settings != nullptr ? strstr(settings, "dev=") : nullptr;
    return found != nullptr ? static_cast<unsigned>(atoi(found + 4)) : 1;
}

// A handle is the number of the device, from 1 on.
unsigned number_of(const void* device) {
    return static_cast<unsigned>(reinterpret_cast<size_t>(device)) - 1;
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

// NVIDIA's starts a thread, too, which stays.
EXPORTED int nvmlInit_v2() {
    pthread_t thread;
    pthread_create(
        &thread, nullptr,
        [](void*) -> void* {
            for (;;)
                pause();
        },
        nullptr);
    pthread_detach(thread);
    return kSuccess;
}

EXPORTED int nvmlShutdown() {
    return kSuccess;
}

EXPORTED int nvmlDeviceGetCount_v2(unsigned* count) {
    *count = devices();
    return kSuccess;
}

EXPORTED int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
    if (index >= devices()) {
        return kInvalidArgument;
    }
    *device = reinterpret_cast<void*>(static_cast<size_t>(index) + 1);
    return kSuccess;
}

EXPORTED int nvmlDeviceGetUUID(void* device, char* uuid, unsigned length) {
    if (number_of(device) >= devices()) {
        return kNotFound;
    }
    // "gantry-simgpu-", 0, and the number from 1 on.
    snprintf(uuid, length, "GPU-67616e74-7279-2d73-696d-6770752d00%02x", number_of(device) + 1);
    return kSuccess;
}

EXPORTED int nvmlDeviceGetPciInfo_v3(void* device, PciInfo* pci) {
    if (number_of(device) >= devices()) {
        return kNotFound;
    }
    snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", number_of(device) + 0x10);
    return kSuccess;
}
