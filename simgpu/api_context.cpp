// SPDX-License-Identifier: BSD-3-Clause
// Contexts: one primary context per device with a handle that never changes, created contexts, and
// the stack of current contexts of each thread.
#include <algorithm>

#include "entry.hpp"

namespace {

using simgpu::Context;
using simgpu::Current;
using simgpu::current_context;
using simgpu::Device;
using simgpu::Driver;
using simgpu::handle_of;
using simgpu::object_of;
using simgpu::this_thread;

Device* find_device(Driver& d, CUdevice ordinal) {
    return ordinal >= 0 && static_cast<std::size_t>(ordinal) < d.devices.size()
               ? d.devices[static_cast<std::size_t>(ordinal)]
               : nullptr;
}

CUresult check_context(Driver& d, CUcontext handle) {
    if (d.live_contexts.count(handle) == 0) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    return object_of(handle)->alive ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult create(Driver& d, CUcontext* context, unsigned flags, CUdevice ordinal) {
    Device* device = find_device(d, ordinal);
    if (device == nullptr) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if ((flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Context* made = simgpu::new_context(d, *device, flags);
    simgpu::activate(d, *made);
    this_thread().contexts.push_back(made);
    *context = handle_of(made);
    return CUDA_SUCCESS;
}

// Optional context argument of the newer calls: null means the current one.
Current context_or_current(Driver& d, CUcontext handle) {
    if (handle == nullptr) {
        return current_context(d);
    }
    const CUresult result = check_context(d, handle);
    return {result == CUDA_SUCCESS ? object_of(handle) : nullptr, result};
}

CUresult synchronize(Driver& d, CUcontext handle) {
    SIM_TRY(simgpu::refuse_during_capture(d));
    const Current current = context_or_current(d, handle);
    SIM_TRY(current.result);
    d.scheduler.wait_for_context(*current.context);
    return current.context->sticky;
}

}  // namespace

#define SIM_DEVICE(name, ordinal)                 \
    Device* const name = find_device(d, ordinal); \
    if (name == nullptr) return CUDA_ERROR_INVALID_DEVICE
#define SIM_CURRENT(name)                            \
    const Current found_##name = current_context(d); \
    SIM_TRY(found_##name.result);                    \
    Context& name = *found_##name.context

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice ordinal) {
    SIM_ENTER(cuDevicePrimaryCtxRetain);
    SIM_DEVICE(device, ordinal);
    ++device->primary->references;
    simgpu::activate(d, *device->primary);
    *context = handle_of(device->primary);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice ordinal) {
    SIM_ENTER(cuDevicePrimaryCtxRelease_v2);
    SIM_DEVICE(device, ordinal);
    if (device->primary->references == 0) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (--device->primary->references == 0) {
        simgpu::deactivate(d, *device->primary);
    }
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice ordinal) {
    SIM_ENTER(cuDevicePrimaryCtxReset_v2);
    SIM_DEVICE(device, ordinal);
    simgpu::deactivate(d, *device->primary);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned* flags, int* active) {
    SIM_ENTER(cuDevicePrimaryCtxGetState);
    SIM_DEVICE(device, ordinal);
    *flags = device->primary->flags;
    *active = device->primary->alive ? 1 : 0;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned flags) {
    SIM_ENTER(cuDevicePrimaryCtxSetFlags_v2);
    SIM_DEVICE(device, ordinal);
    device->primary->flags = flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice ordinal) {
    SIM_ENTER(cuCtxCreate_v2);
    return create(d, context, flags, ordinal);
}

CUresult cuCtxCreate_v4(CUcontext* context, void*, unsigned flags, CUdevice ordinal) {
    SIM_ENTER(cuCtxCreate_v4);
    return create(d, context, flags, ordinal);
}

CUresult cuCtxDestroy_v2(CUcontext handle) {
    SIM_ENTER(cuCtxDestroy_v2);
    SIM_TRY(check_context(d, handle));
    Context* context = object_of(handle);
    if (context->primary) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    simgpu::deactivate(d, *context);
    auto& stack = this_thread().contexts;
    if (!stack.empty() && stack.back() == context) {
        stack.pop_back();
    }
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext handle) {
    SIM_ENTER(cuCtxPushCurrent_v2);
    SIM_TRY(check_context(d, handle));
    this_thread().contexts.push_back(object_of(handle));
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext* handle) {
    SIM_ENTER(cuCtxPopCurrent_v2);
    auto& stack = this_thread().contexts;
    if (stack.empty()) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (handle != nullptr) {
        *handle = handle_of(stack.back());
    }
    stack.pop_back();
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext handle) {
    SIM_ENTER(cuCtxSetCurrent);
    auto& stack = this_thread().contexts;
    if (handle != nullptr) {
        SIM_TRY(check_context(d, handle));
    }
    if (!stack.empty()) {
        stack.pop_back();
    }
    if (handle != nullptr) {
        stack.push_back(object_of(handle));
    }
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* handle) {
    SIM_ENTER(cuCtxGetCurrent);
    const auto& stack = this_thread().contexts;
    *handle = stack.empty() ? nullptr : handle_of(stack.back());
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
    SIM_ENTER(cuCtxGetDevice);
    SIM_CURRENT(context);
    *device = context.device->ordinal;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext handle) {
    SIM_ENTER(cuCtxGetDevice_v2);
    const Current current = context_or_current(d, handle);
    SIM_TRY(current.result);
    *device = current.context->device->ordinal;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext handle, unsigned long long* id) {
    SIM_ENTER(cuCtxGetId);
    const Current current = context_or_current(d, handle);
    SIM_TRY(current.result);
    *id = current.context->id;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned* flags) {
    SIM_ENTER(cuCtxGetFlags);
    SIM_CURRENT(context);
    *flags = context.flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned flags) {
    SIM_ENTER(cuCtxSetFlags);
    SIM_CURRENT(context);
    context.flags = flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext handle, unsigned* version) {
    SIM_ENTER(cuCtxGetApiVersion);
    const Current current = context_or_current(d, handle);
    SIM_TRY(current.result);
    *version = 3020;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(std::size_t* value, CUlimit) {
    SIM_ENTER(cuCtxGetLimit);
    SIM_CURRENT(context);
    (void)context;
    *value = 1024;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit, std::size_t) {
    SIM_ENTER(cuCtxSetLimit);
    return current_context(d).result;
}

CUresult cuCtxSynchronize() {
    SIM_ENTER(cuCtxSynchronize);
    return synchronize(d, nullptr);
}

CUresult cuCtxSynchronize_v2(CUcontext handle) {
    SIM_ENTER(cuCtxSynchronize_v2);
    return synchronize(d, handle);
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    SIM_ENTER(cuCtxGetStreamPriorityRange);
    SIM_TRY(current_context(d).result);
    if (least != nullptr) {
        *least = 0;
    }
    if (greatest != nullptr) {
        *greatest = -5;
    }
    return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext handle, unsigned flags) {
    SIM_ENTER(cuCtxEnablePeerAccess);
    SIM_CURRENT(context);
    SIM_TRY(check_context(d, handle));
    Context* peer = object_of(handle);
    if (flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (peer->device == context.device) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (!d.model.machine().peer_access) {
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    }
    if (std::find(context.peers.begin(), context.peers.end(), peer) != context.peers.end()) {
        return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    }
    context.peers.push_back(peer);
    return CUDA_SUCCESS;
}

CUresult cuCtxDisablePeerAccess(CUcontext handle) {
    SIM_ENTER(cuCtxDisablePeerAccess);
    SIM_CURRENT(context);
    SIM_TRY(check_context(d, handle));
    return std::erase(context.peers, object_of(handle)) == 0 ? CUDA_ERROR_PEER_ACCESS_NOT_ENABLED
                                                             : CUDA_SUCCESS;
}
