// SPDX-License-Identifier: BSD-3-Clause
//
// Host twins of the copying kernels, for the simulated GPU (simgpu/kernels.hpp): the same effect, one
// block after the other.
#include "device/kernels/copy_many.hpp"
#include "kernels.hpp"
#include "twins.hpp"

#include <atomic>
#include <cstring>

namespace gantry::kernels {
namespace {

template <class Work>
void copy_all(const simgpu_launch* launch) {
    Work work;
    std::memcpy(&work, launch->parameters[0], sizeof work);
    for (Word item = 0; item < work.copies * work.parts; ++item) {
        const auto& copy = work.copy[item / work.parts];
        if (item % work.parts == 0)
            std::memmove(reinterpret_cast<void*>(copy.destination),
                         reinterpret_cast<const void*>(copy.source), copy.bytes);
        auto* flag = reinterpret_cast<unsigned*>(work.flags + item * kFlagBytes);
        __atomic_store_n(flag, static_cast<unsigned>(work.sequence), __ATOMIC_RELEASE);
    }
}

template <class Work>
void traffic(const simgpu_launch* launch, uint64_t* device_bytes, uint64_t* link_bytes) {
    Work work;
    std::memcpy(&work, launch->parameters[0], sizeof work);
    *device_bytes = 0;
    for (Word i = 0; i < work.copies; ++i)
        *device_bytes += 2 * work.copy[i].bytes;
    *link_bytes = 0;
}

}  // namespace

void add_copy_many(void (*add)(const simgpu_twin* twin)) {
    static const simgpu_twin kTwins[] = {
        {"gantry_copy_many", &copy_all<CopyMany>, &traffic<CopyMany>, 0},
        {"gantry_copy_few", &copy_all<CopyFew>, &traffic<CopyFew>, 0},
    };
    for (const simgpu_twin& twin : kTwins)
        add(&twin);
}

}  // namespace gantry::kernels
