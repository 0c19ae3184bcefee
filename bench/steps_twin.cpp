// SPDX-License-Identifier: BSD-3-Clause
//
// The host twin of the kernel in steps_kernel.h, for the simulated GPU (simgpu/kernels.hpp). It does not wait
// for `nanoseconds`: the simulated GPU has times of its own.
#include "simgpu/kernels.hpp"

#include <cstdint>
#include <cstring>

namespace {

template <class T>
T parameter(const simgpu_launch* launch, int which) {
    T value;
    std::memcpy(&value, launch->parameters[which], sizeof value);
    return value;
}

// In the order of the PTX.
enum { kSent, kReceived, kWrong, kWords, kBlock, kNanoseconds, kValue, kExpected };

void step(const simgpu_launch* launch) {
    auto* const sent = parameter<std::int32_t*>(launch, kSent);
    const auto* const received = parameter<const std::int32_t*>(launch, kReceived);
    auto* const wrong = parameter<std::int32_t*>(launch, kWrong);
    const auto words = parameter<std::uint64_t>(launch, kWords);
    const auto block = parameter<std::uint64_t>(launch, kBlock);
    for (std::uint64_t i = 0; i < words; ++i) {
        if (received != nullptr && received[i] != parameter<std::int32_t>(launch, kExpected) +
                                                      static_cast<std::int32_t>(i / block))
            ++*wrong;
        sent[i] = parameter<std::int32_t>(launch, kValue);
    }
}

void traffic(const simgpu_launch* launch, std::uint64_t* device_bytes, std::uint64_t* link_bytes) {
    *device_bytes = 2 * sizeof(std::int32_t) * parameter<std::uint64_t>(launch, kWords);
    *link_bytes = 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void simgpu_twins(
    void (*add)(const simgpu_twin* twin)) {
    static const simgpu_twin kStep = {"gantry_bench_step", &step, &traffic, 0};
    add(&kStep);
}
