// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/pins.hpp"

#include <algorithm>

namespace gantry::device::cuda {

Status Pins::apply(const Context& context) {
    const auto wanted = [](const Pin& pin) { return pin.standing == Standing::wanted; };
    if (std::none_of(pins_.begin(), pins_.end(), wanted)) return success();
    const Current current(driver_, context);
    if (!current.ok())
        return driver_.failed("cuCtxPushCurrent", current.result(), "to page-lock memory");
    Status refusal;
    for (Pin& pin : pins_) {
        if (!wanted(pin)) continue;
        // Mapped: kernels pack straight into it.
        const CUresult result = driver_.call(
            driver_.cu.cuMemHostRegister_v2, pin.address, static_cast<std::size_t>(pin.bytes),
            static_cast<unsigned>(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
        pin.context = context;
        if (result == CUDA_SUCCESS) {
            pin.standing = Standing::ours;
        } else if (result == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED) {
            pin.standing = Standing::foreign;
        } else {
            pin.standing = Standing::refused;
            if (refusal.ok())
                refusal = driver_.failed(
                    "cuMemHostRegister", result,
                    fmt::format("of {} bytes at {}; the memory stays pageable, copies are slower",
                                pin.bytes, fmt::ptr(pin.address)));
        }
    }
    return refusal;
}

void Pins::unregister(const Pin& pin) {
    if (pin.standing != Standing::ours || !driver_.ready()) return;
    const Current current(driver_, pin.context);
    if (current.ok()) driver_.call(driver_.cu.cuMemHostUnregister, pin.address);
}

void Pins::remove(void* address) {
    const auto pin = std::find_if(pins_.begin(), pins_.end(),
                                  [address](const Pin& row) { return row.address == address; });
    if (pin == pins_.end()) return;
    unregister(*pin);
    pins_.erase(pin);
}

Range Pins::around(const void* address, Bytes bytes) const {
    for (const Pin& pin : pins_) {
        const Range range{reinterpret_cast<std::uintptr_t>(pin.address), pin.bytes};
        if (pin.standing == Standing::ours &&
            range.contains(reinterpret_cast<std::uintptr_t>(address), bytes))
            return range;
    }
    return {};
}

void Pins::forget_context(CUcontext context) {
    for (Pin& pin : pins_)
        if (pin.context.handle == context && pin.standing != Standing::wanted)
            pin.standing = Standing::wanted;
}

void Pins::clear() {
    for (const Pin& pin : pins_)
        unregister(pin);
    pins_.clear();
}

}  // namespace gantry::device::cuda
