// SPDX-License-Identifier: BSD-3-Clause
#include "driver.hpp"

#include "apps/common/cuda_library.hpp"
#include "job.hpp"

#include <fmt/format.h>

namespace gantry::bench {

Driver& driver() {
    static Driver the_driver;
    return the_driver;
}

bool Driver::load(std::string* why_not) {
    if (library_ != nullptr) return true;
    const apps::DriverCall calls[] = {
#define GANTRY_BENCH_CALL(symbol) {#symbol, reinterpret_cast<void**>(&symbol)},
#define GANTRY_BENCH_OPTIONAL(symbol) {#symbol, reinterpret_cast<void**>(&symbol), true},
#include "bench/driver_calls.def"
#undef GANTRY_BENCH_CALL
#undef GANTRY_BENCH_OPTIONAL
    };
    library_ = apps::open_cuda_library(calls, why_not);
    return library_ != nullptr;
}

bool Driver::has_floors() const {
    bool all = true;
#define GANTRY_BENCH_CALL(symbol)
#define GANTRY_BENCH_OPTIONAL(symbol) all = all && symbol != nullptr;
#include "bench/driver_calls.def"
#undef GANTRY_BENCH_CALL
#undef GANTRY_BENCH_OPTIONAL
    return all;
}

int Driver::count(std::string* why_none) {
    if (!load(why_none)) return 0;
    int devices = 0;
    check(cuDeviceGetCount(&devices), "cuDeviceGetCount");
    if (devices == 0) *why_none = "the CUDA driver sees no device";
    return devices;
}

void Driver::start(int gpu) {
    if (started()) return;
    std::string why_not;
    const int devices = count(&why_not);
    if (devices == 0)
        give_up(why_not +
                ". Device, managed and pinned buffers need one; ./dev bench uses the simulated "
                "GPU, and placement H H none");
    if (gpu < 0 || gpu >= devices)
        give_up(fmt::format("--gpus asks for device {}, but there are {}", gpu, devices));
    check(cuDeviceGet(&device_, gpu), "cuDeviceGet");
    check(cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
    check(cuCtxSetCurrent(context_), "cuCtxSetCurrent");
    gpu_ = gpu;
}

void Driver::start_in_turn(std::vector<int> gpus, int rank) {
    std::string why_none;
    for (int each = 0, devices = gpus.empty() ? count(&why_none) : 0; each < devices; ++each)
        gpus.push_back(each);
    if (gpus.empty()) gpus.push_back(0);  // which says why there is none
    start(gpus[static_cast<std::size_t>(rank) % gpus.size()]);
}

void Driver::stop() {
    if (!started()) return;
    cuCtxSetCurrent(nullptr);
    cuDevicePrimaryCtxRelease_v2(device_);
    context_ = nullptr;
}

std::string Driver::gpu_name() const {
    char text[128] = "";
    check(cuDeviceGetName(text, sizeof text, device_), "cuDeviceGetName");
    return text;
}

void Driver::check(CUresult result, const char* call, std::size_t bytes) const {
    if (result == CUDA_SUCCESS) [[likely]]
        return;
    const char* error = nullptr;
    cuGetErrorName(result, &error);
    give_up(fmt::format("{}{}: {}", call, bytes > 0 ? fmt::format(" of {} bytes", bytes) : "",
                        error != nullptr ? error : "unknown error"));
}

}  // namespace gantry::bench
