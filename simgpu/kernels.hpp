// SPDX-License-Identifier: BSD-3-Clause
// Host C++ twins of kernels. A launch is resolved by the kernel's name: the module image is PTX text that
// declares it, or compiled code that has it (its parameter sizes are read from there), the twin does the work.
// Twins come from shared objects: every file in SIMGPU_KERNELS (paths separated by ':'), else every
// *.twins.so beside libcuda.so.1, is loaded when the first module is; it exports
//
//     extern "C" void simgpu_twins(void (*add)(const simgpu_twin* twin));
//
// A twin gets its parameters as the GPU would, with device addresses in them (8-byte words,
// structures passed by value included) already replaced by addresses it may touch. Pointers that
// lie in device memory are not: pass them through launch->translate.
#pragma once

#include <stddef.h>
#include <stdint.h>

extern "C" {

struct simgpu_launch {
    unsigned grid[3];
    unsigned block[3];
    unsigned shared_bytes;
    unsigned parameter_count;
    void* const* parameters;                      // each points to its value
    void* (*translate)(uint64_t device_address);  // host pointers come back unchanged
    // Modelled times, scaled, of a copy by a kernel that runs already: in device memory, to host
    // memory, from it.
    uint64_t resident_ns, resident_out_ns, resident_in_ns;
};

struct simgpu_twin {
    const char* name;
    void (*run)(const struct simgpu_launch* launch);
    // Optional: bytes the kernel moves in device memory and over the link to the host, for the time
    // model.
    void (*traffic)(const struct simgpu_launch* launch, uint64_t* device_bytes,
                    uint64_t* link_bytes);
    // Not zero: the kernel may wait for a flag that something else must set; it gets a thread of
    // its own.
    int may_wait;
};

typedef void (*simgpu_add_twin)(const struct simgpu_twin* twin);
}
