// SPDX-License-Identifier: BSD-3-Clause
#include "driver.hpp"

#include "cuda_library.hpp"
#include "mistake.hpp"

namespace gantry::apps {

Driver& driver() {
    static Driver the_driver;
    return the_driver;
}

bool Driver::present(std::string* why_not) {
    if (library_ == nullptr) {
        const DriverCall calls[] = {
#define APPS_DRIVER_CALL(symbol) {#symbol, reinterpret_cast<void**>(&symbol)},
#include "driver_calls.def"
#undef APPS_DRIVER_CALL
        };
        library_ = open_cuda_library(calls, why_not);
        if (library_ == nullptr) return false;
    }
    int devices = 0;
    check(cuDeviceGetCount(&devices), "cuDeviceGetCount");
    if (devices == 0) *why_not = "the CUDA driver sees no device";
    return devices > 0;
}

void Driver::start(int number) {
    if (context_ != nullptr) return;
    int devices = 0;
    check(cuDeviceGetCount(&devices), "cuDeviceGetCount");
    check(cuDeviceGet(&device_, number % devices), "cuDeviceGet");
    check(cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
    check(cuCtxSetCurrent(context_), "cuCtxSetCurrent");
}

void Driver::stop() {
    if (context_ == nullptr) return;
    cuCtxSetCurrent(nullptr);
    cuDevicePrimaryCtxRelease_v2(device_);
    context_ = nullptr;
}

std::string Driver::device_name() const {
    char text[128] = "";
    check(cuDeviceGetName(text, sizeof text, device_), "cuDeviceGetName");
    return text;
}

void Driver::check(CUresult result, const char* call, std::size_t bytes) const {
    if (result == CUDA_SUCCESS) [[likely]]
        return;
    const char* name = nullptr;
    cuGetErrorName(result, &name);
    throw Failure(std::string(call) + (bytes > 0 ? " of " + std::to_string(bytes) + " bytes" : "") +
                  ": " + (name != nullptr ? name : "unknown error"));
}

}  // namespace gantry::apps
