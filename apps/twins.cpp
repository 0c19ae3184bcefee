// SPDX-License-Identifier: BSD-3-Clause
//
// The applications' kernels for the simulated GPU (simgpu/kernels.hpp): the loops of --memory host.
#include "awp/host_kernels.hpp"
#include "common/move_kernels.hpp"
#include "lbm/host_kernels.hpp"

#include <kernels.hpp>

namespace gantry::apps {
namespace {

template <const Kernel& kernel>
void run(const simgpu_launch* launch) {
    table_address() = launch->translate;
    kernel.on_host(launch->parameters[0]);
}

template <const Kernel& kernel>
void traffic(const simgpu_launch* launch, std::uint64_t* device_bytes, std::uint64_t* link_bytes) {
    *device_bytes =
        static_cast<std::uint64_t>(kernel.items(launch->parameters[0]) * kernel.bytes_per_item);
    *link_bytes = 0;
}

template <const Kernel& kernel>
void add_one(simgpu_add_twin add) {
    static const simgpu_twin twin = {kernel.name, &run<kernel>, &traffic<kernel>, 0};
    add(&twin);
}

}  // namespace
}  // namespace gantry::apps

extern "C" __attribute__((visibility("default"))) void simgpu_twins(
    void (*add)(const simgpu_twin* twin)) {
    using namespace gantry::apps;
    add_one<kMove8>(add);
    add_one<kMove4>(add);
    add_one<lbm::kCollideDouble>(add);
    add_one<lbm::kStreamDouble>(add);
    add_one<lbm::kSumDouble>(add);
    add_one<lbm::kCollideFloat>(add);
    add_one<lbm::kStreamFloat>(add);
    add_one<lbm::kSumFloat>(add);
    add_one<awp::kVelocityKernel>(add);
    add_one<awp::kStressKernel>(add);
    add_one<awp::kSourceKernel>(add);
    add_one<awp::kRecordKernel>(add);
}
