// SPDX-License-Identifier: BSD-3-Clause
#include "runtime.hpp"

#include <mutex>
#include <unordered_map>

namespace simgpu::cudart {
namespace {

thread_local int thread_device = 0;
thread_local Error thread_error = CUDA_SUCCESS;

// Primary contexts that this process holds. Never destroyed: programs call the runtime at exit.
struct Primary {
    std::mutex mutex;
    std::unordered_map<int, CUcontext> contexts;
};
Primary& primary() {
    static auto* all = new Primary;
    return *all;
}

}  // namespace

Error remember(int result) {
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY) {
        thread_error = result;
    }
    return result;
}

Error last_error() {
    return thread_error;
}

Error take_last_error() {
    const Error error = thread_error;
    thread_error = CUDA_SUCCESS;
    return error;
}

CUresult start() {
    return cuInit(0);
}

int device() {
    CUcontext current = nullptr;
    CUdevice of_context = 0;
    if (cuCtxGetCurrent(&current) == CUDA_SUCCESS && current != nullptr &&
        cuCtxGetDevice(&of_context) == CUDA_SUCCESS) {
        return of_context;
    }
    return thread_device;
}

CUresult primary_context(int ordinal, CUcontext* context) {
    const std::lock_guard<std::mutex> guard(primary().mutex);
    CUcontext& held = primary().contexts[ordinal];
    if (held == nullptr) {
        const CUresult retained = cuDevicePrimaryCtxRetain(&held, ordinal);
        if (retained != CUDA_SUCCESS) {
            held = nullptr;
            return retained;
        }
    }
    *context = held;
    return CUDA_SUCCESS;
}

CUresult set_device(int ordinal) {
    CUcontext context = nullptr;
    CUresult result = start();
    if (result == CUDA_SUCCESS) {
        result = primary_context(ordinal, &context);
    }
    if (result == CUDA_SUCCESS) {
        result = cuCtxSetCurrent(context);
    }
    if (result == CUDA_SUCCESS) {
        thread_device = ordinal;
    }
    return result;
}

CUresult reset_device() {
    const int ordinal = device();
    {
        const std::lock_guard<std::mutex> guard(primary().mutex);
        primary().contexts.erase(ordinal);
    }
    cuCtxSetCurrent(nullptr);
    return cuDevicePrimaryCtxReset_v2(ordinal);
}

CUresult enter() {
    const CUresult started = start();
    if (started != CUDA_SUCCESS) {
        return started;
    }
    CUcontext current = nullptr;
    const CUresult asked = cuCtxGetCurrent(&current);
    if (asked != CUDA_SUCCESS || current != nullptr) {
        return asked;
    }
    return set_device(thread_device);
}

}  // namespace simgpu::cudart
