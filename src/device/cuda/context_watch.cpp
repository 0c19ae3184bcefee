// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/context_watch.hpp"

#include "device/cuda/context.hpp"

#include <algorithm>

namespace gantry::device::cuda {
namespace {

constexpr std::size_t kWitnessBytes = 256;

}  // namespace

bool ContextWatch::is_primary(CUcontext context, CUdevice device) {
    unsigned int flags = 0;
    int active = 0;
    driver_.call(driver_.cu.cuDevicePrimaryCtxGetState, device, &flags, &active);
    if (active == 0) return false;  // retaining it now would create it
    CUcontext primary = nullptr;
    if (driver_.call(driver_.cu.cuDevicePrimaryCtxRetain, &primary, device) != CUDA_SUCCESS)
        return false;
    driver_.call(driver_.cu.cuDevicePrimaryCtxRelease_v2, device);
    return primary == context;
}

void ContextWatch::saw_another(CUcontext context, CUdevice device) {
    const auto known = [context](const Watched& each) { return each.context == context; };
    if (context == nullptr) return;
    last_seen_ = context;
    if (std::any_of(watched_.begin(), watched_.end(), known)) return;
    Watched fresh{context, 0};
    if (!is_primary(context, device)) {
        const Current current(driver_, context);
        if (current.ok()) driver_.call(driver_.cu.cuMemAlloc_v2, &fresh.witness, kWitnessBytes);
        any_witness_ = true;
    }
    watched_.push_back(fresh);
}

CUcontext ContextWatch::find_dead() {
    for (auto each = watched_.begin(); each != watched_.end(); ++each) {
        if (each->witness == 0) continue;
        CUcontext owner = nullptr;
        const CUresult result =
            driver_.call(driver_.cu.cuPointerGetAttribute, static_cast<void*>(&owner),
                         CU_POINTER_ATTRIBUTE_CONTEXT, each->witness);
        if (result == CUDA_SUCCESS && owner == each->context) continue;
        const CUcontext dead = each->context;
        watched_.erase(each);
        last_seen_ = nullptr;
        return dead;
    }
    return nullptr;
}

}  // namespace gantry::device::cuda
