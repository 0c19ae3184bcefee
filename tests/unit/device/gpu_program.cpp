// SPDX-License-Identifier: BSD-3-Clause
#include "gpu_program.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

namespace gantry::device::testing_support {

std::string GpuProgram::library() {
    if (const char* named = std::getenv("GANTRY_TEST_CUDA")) return named;
    char path[4096] = {};
    if (readlink("/proc/self/exe", path, sizeof(path) - 1) <= 0) return {};
    std::string folder(path);
    folder.resize(folder.rfind('/'));
    const std::string simulated = folder + "/../simgpu/libcuda.so.1";
    return access(simulated.c_str(), R_OK) == 0 ? simulated : std::string();
}

bool GpuProgram::load() {
    // Two GPUs that take no time, unless whoever runs the tests wants another machine.
    setenv("SIMGPU", "dev=2,mem=1G", 0);
    void* handle = dlopen(library().c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return false;
    bool complete = true;
#define GANTRY_TEST_CALL(name)                                 \
    name = reinterpret_cast<PFN_##name>(dlsym(handle, #name)); \
    complete = complete && name != nullptr;
    GANTRY_TEST_CALLS(GANTRY_TEST_CALL)
#undef GANTRY_TEST_CALL
    simgpu_calls = reinterpret_cast<decltype(simgpu_calls)>(dlsym(handle, "simgpu_calls"));
    simgpu_fault = reinterpret_cast<decltype(simgpu_fault)>(dlsym(handle, "simgpu_fault"));
    simgpu_take_census =
        reinterpret_cast<decltype(simgpu_take_census)>(dlsym(handle, "simgpu_take_census"));
    return complete;
}

}  // namespace gantry::device::testing_support
