// SPDX-License-Identifier: BSD-3-Clause
#include "cuda_library.hpp"

#include "device/cuda/driver_abi.h"

#include <dlfcn.h>

#include <cstdlib>

namespace gantry::apps {

void* open_cuda_library(std::span<const DriverCall> calls, std::string* why_not) {
    const char* chosen = std::getenv("GANTRY_CUDA_LIBRARY");
    const char* file = chosen != nullptr && *chosen != '\0' ? chosen : "libcuda.so.1";
    void* library = dlopen(file, RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) {
        *why_not = std::string("no CUDA driver: ") + dlerror();
        return nullptr;
    }
    for (const DriverCall& call : calls) {
        *call.function = dlsym(library, call.name);
        if (*call.function != nullptr || call.optional) continue;
        *why_not = std::string(file) + " has no " + call.name + ": not a CUDA driver, or too old";
        return nullptr;
    }
    const auto init = reinterpret_cast<PFN_cuInit>(dlsym(library, "cuInit"));
    const auto name_of = reinterpret_cast<PFN_cuGetErrorName>(dlsym(library, "cuGetErrorName"));
    if (init == nullptr || name_of == nullptr) {
        *why_not = std::string(file) + " has no cuInit: not a CUDA driver";
        return nullptr;
    }
    if (const CUresult result = init(0); result != CUDA_SUCCESS) {
        const char* name = nullptr;
        name_of(result, &name);
        *why_not = std::string("the CUDA driver is there, but cuInit says ") +
                   (name != nullptr ? name : "an unknown error");
        return nullptr;
    }
    return library;
}

}  // namespace gantry::apps
