// SPDX-License-Identifier: BSD-3-Clause
// Host twins of the kernels that kernel_test.cpp launches.
#include <atomic>
#include <cstring>

#include "kernels.hpp"

namespace {

template <class T>
T parameter(const simgpu_launch* launch, unsigned index) {
    T value;
    std::memcpy(&value, launch->parameters[index], sizeof value);
    return value;
}

// add(int* data, int value, u64 count)
void add(const simgpu_launch* launch) {
    int* data = parameter<int*>(launch, 0);
    const int value = parameter<int>(launch, 1);
    const auto count = parameter<unsigned long long>(launch, 2);
    for (unsigned long long index = 0; index < count; ++index) {
        data[index] += value;
    }
}

void add_traffic(const simgpu_launch* launch, uint64_t* device_bytes, uint64_t* link_bytes) {
    *device_bytes = parameter<unsigned long long>(launch, 2) * 8;
    *link_bytes = 0;
}

struct Nested {
    int* data;
    int value;
};

// add_nested(Nested by value; int** list in device memory)
void add_nested(const simgpu_launch* launch) {
    const auto nested = parameter<Nested>(launch, 0);
    auto* list = parameter<uint64_t*>(launch, 1);
    nested.data[0] += nested.value;
    *static_cast<int*>(launch->translate(list[0])) += nested.value;
}

// wait_flag(int* flag): until another stream or the host sets it
void wait_flag(const simgpu_launch* launch) {
    auto* flag = parameter<std::atomic<int>*>(launch, 0);
    while (flag->load(std::memory_order_acquire) == 0) {
    }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void simgpu_twins(simgpu_add_twin add_twin) {
    const simgpu_twin twins[] = {{"add", add, add_traffic, 0},
                                 {"add_nested", add_nested, nullptr, 0},
                                 {"wait_flag", wait_flag, nullptr, 1}};
    for (const simgpu_twin& twin : twins) {
        add_twin(&twin);
    }
}
