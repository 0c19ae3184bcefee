// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/gpu.hpp"

#include "base/log.hpp"
#include "device/cuda/gpu_traits.hpp"
#include "device/machine_facts.hpp"
#include "model/tuned.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstring>

namespace gantry::device::cuda {

void GpuTable::fill() {
    if (filled_ || !driver_.ready()) return;
    int count = 0;
    const CUresult result = driver_.call(driver_.cu.cuDeviceGetCount, &count);
    if (result != CUDA_SUCCESS) {
        log::warn("cuda: cuDeviceGetCount: {}; every pointer is taken for host memory",
                  result_name(result));
        count = 0;
    }
    for (int ordinal = 0; ordinal < count; ++ordinal) {
        CUdevice device = ordinal;
        driver_.call(driver_.cu.cuDeviceGet, &device, ordinal);
        add(device, ordinal);
    }
    for (Gpu& gpu : gpus_)
        gpu.peers.assign(gpus_.size(), Access::unknown);
    filled_ = true;
}

void GpuTable::add(CUdevice device, int ordinal) {
    const auto call = [this](auto& entry, auto... arguments) {
        return driver_.call(entry, arguments...);
    };
    model::Traits traits = traits_of(driver_.cu, call, device);
    model::Description description = model::describe(machine_, traits);
    if (description.origin == model::Origin::estimated) {
        read_memory_rate(driver_.cu, call, device, traits);
        description = model::describe(machine_, traits);
    }
    if (!description.problem.ok() && ordinal == 0)  // it is of all of them
        log::warn("cuda: {}", description.problem.text());
    log::info("cuda: gpu {} is {}, {}", ordinal, traits.name, model::origin_text(description));
    Gpu gpu;
    gpu.device = device;
    gpu.name = traits.name;
    int shared_service = 0;
    driver_.call(driver_.cu.cuDeviceGetAttribute, &shared_service, CU_DEVICE_ATTRIBUTE_MPS_ENABLED,
                 device);
    GpuFacts& facts = facts_.emplace_back(gpu_facts(description.machine, shared_service != 0));
    CUuuid uuid{};
    // The newer call tells the instances of a partitioned GPU apart.
    if (driver_.call(driver_.cu.cuDeviceGetUuid_v2, &uuid, device) != CUDA_SUCCESS)
        driver_.call(driver_.cu.cuDeviceGetUuid, &uuid, device);
    std::memcpy(facts.uuid.data(), uuid.bytes, facts.uuid.size());
    // Elsewhere a program must not touch managed memory while any kernel runs.
    int managed_beside_kernels = 0;
    driver_.call(driver_.cu.cuDeviceGetAttribute, &managed_beside_kernels,
                 CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, device);
    if (managed_beside_kernels == 0 || !kernels_stay_) facts.let_no_kernel_stay();
    gpus_.push_back(std::move(gpu));
}

bool GpuTable::can_access_peer(int gpu, int other) {
    if (!valid(gpu) || !valid(other)) return false;
    if (gpu == other) return true;
    Gpu& from = gpus_[static_cast<std::size_t>(gpu)];
    Access& access = from.peers[static_cast<std::size_t>(other)];
    if (access == Access::unknown) {
        int can = 0;
        const CUresult result = driver_.call(driver_.cu.cuDeviceCanAccessPeer, &can, from.device,
                                             gpus_[static_cast<std::size_t>(other)].device);
        access = result == CUDA_SUCCESS && can != 0 ? Access::yes : Access::no;
    }
    return access == Access::yes;
}

int GpuTable::number_of(const Uuid& uuid) {
    for (std::size_t gpu = 0; gpu < facts_.size(); ++gpu)
        if (facts_[gpu].uuid == uuid) return static_cast<int>(gpu);
    auto hidden = std::find(hidden_.begin(), hidden_.end(), uuid);
    if (hidden == hidden_.end()) hidden = hidden_.insert(hidden, uuid);
    return count() + static_cast<int>(hidden - hidden_.begin());
}

CUcontext GpuTable::current_on(const Gpu& gpu) {
    CUcontext current = nullptr;
    CUdevice device = -1;
    if (driver_.call(driver_.cu.cuCtxGetCurrent, &current) != CUDA_SUCCESS || current == nullptr)
        return nullptr;
    if (driver_.call(driver_.cu.cuCtxGetDevice, &device) != CUDA_SUCCESS || device != gpu.device)
        return nullptr;
    return current;
}

Result<CUcontext> GpuTable::context(int index) {
    if (!valid(index))
        return failure(MPI_ERR_OTHER, "GPU {} is not one of the {} GPUs that this process sees",
                       index, count());
    Gpu& gpu = gpus_[static_cast<std::size_t>(index)];
    if (gpu.preferred == nullptr) {
        unsigned int flags = 0;
        int active = 0;
        driver_.call(driver_.cu.cuDevicePrimaryCtxGetState, gpu.device, &flags, &active);
        if (active == 0) gpu.preferred = current_on(gpu);
    }
    if (gpu.preferred == nullptr) {
        CUcontext primary = nullptr;
        const CUresult result =
            driver_.call(driver_.cu.cuDevicePrimaryCtxRetain, &primary, gpu.device);
        if (result != CUDA_SUCCESS)
            return driver_.failed("cuDevicePrimaryCtxRetain", result,
                                  fmt::format("of GPU {}", index));
        if (gpu.retained) driver_.call(driver_.cu.cuDevicePrimaryCtxRelease_v2, gpu.device);
        gpu.retained = true;
        gpu.preferred = primary;
    }
    return gpu.preferred;
}

void GpuTable::forget_context(CUcontext context) {
    for (Gpu& gpu : gpus_)
        if (gpu.preferred == context) gpu.preferred = nullptr;
}

void GpuTable::release() {
    for (Gpu& gpu : gpus_) {
        if (gpu.retained && driver_.ready())
            driver_.call(driver_.cu.cuDevicePrimaryCtxRelease_v2, gpu.device);
        gpu.retained = false;
        gpu.preferred = nullptr;
    }
}

}  // namespace gantry::device::cuda
