// SPDX-License-Identifier: BSD-3-Clause
//
// apps.openacc.so: what an OpenACC program does with its exchange buffers. A module of its own, because a
// compiler must know OpenACC for it; the programs open it where --exchange openacc is asked for.
//
//   on a GPU   acc_malloc, and a shadow in host memory that is mapped onto it (acc_map_data): inside of
//              host_data use_device the shadow's name is the device's address
//   on a host  the shadow itself is the memory
#include "memory.hpp"

#include <openacc.h>

#include <cstdlib>

namespace {

void* allocate(std::size_t bytes) {
    return acc_malloc(bytes);
}
void release(void* device) {
    acc_free(device);
}

void map(void* shadow, void* device, std::size_t bytes) {
    acc_map_data(shadow, device, bytes);
}
void unmap(void* shadow) {
    acc_unmap_data(shadow);
}

void use(void* shadow, void (*function)(void* address, const void* what), const void* what) {
    auto* bytes = static_cast<char*>(shadow);
#pragma acc host_data use_device(bytes)
    function(bytes, what);
}

int devices() {
    return acc_get_num_devices(acc_device_nvidia);
}

void choose(int number) {
    if (number < 0)
        acc_set_device_type(acc_device_host);
    else
        acc_set_device_num(number, acc_device_nvidia);
}

// The host has nothing to shut down.
void stop() {
    if (acc_get_device_type() == acc_device_nvidia) acc_shutdown(acc_device_nvidia);
}

}  // namespace

extern "C" const gantry::apps::OpenAccCalls apps_openacc_calls = {
    &devices, &choose, &allocate, &release, &map, &unmap, &use, &stop};
