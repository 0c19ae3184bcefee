// SPDX-License-Identifier: BSD-3-Clause
#include "gpu_program.hpp"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace gantry::device::testing_support {

namespace {

// Asked in a child, so that this process stays one that has not loaded a driver.
bool loader_finds(const char* name) {
    const pid_t child = fork();
    if (child == 0) _exit(dlopen(name, RTLD_LAZY) != nullptr ? 0 : 1);
    int status = 1;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

std::string find_library() {
    if (const char* named = std::getenv("GANTRY_TEST_CUDA")) return named;
    if (loader_finds("libcuda.so.1")) return "libcuda.so.1";
    char path[4096] = {};
    if (readlink("/proc/self/exe", path, sizeof(path) - 1) <= 0) return {};
    std::string folder(path);
    folder.resize(folder.rfind('/'));
    const std::string simulated = folder + "/../simgpu/libcuda.so.1";
    return access(simulated.c_str(), R_OK) == 0 ? simulated : std::string();
}

}  // namespace

std::string GpuProgram::library() {
    static const std::string found = find_library();
    return found;
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
