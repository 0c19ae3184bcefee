// SPDX-License-Identifier: BSD-3-Clause
//
// Small copies by the persistent kernel (device/kernels/copy_resident.cu): from the moment an item is
// written into the ring until its flag shows.
#include "device/cuda/copy_ring.hpp"
#include "device/kernels/images.hpp"
#include "tune.hpp"

#include <cstring>

namespace gantry::tool {
namespace {

using device::cuda::CopyRing;

constexpr Bytes kCopy = 8;
constexpr Nanoseconds kIdle = 50 * kMillisecond, kLife = 2000 * kMillisecond;
constexpr double kPatience = 1e9;  // one that does not start, or failed
constexpr int kWarm = 20, kSamples = 101;

}  // namespace

void measure_resident(Cuda& cuda, CUstream stream, CUdeviceptr first, CUdeviceptr second,
                      const std::byte* pinned, model::KernelCost& kernel) {
    kernel.resident = kernel.resident_out = kernel.resident_in = 0;
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    if (cuda.cuModuleLoadData(&module, kernels::copy_resident().ptx) != CUDA_SUCCESS) return;
    std::byte* const memory = cuda.allocate_host(CopyRing::bytes());
    std::memset(memory, 0, CopyRing::bytes());
    CopyRing ring(memory);
    constexpr std::uint64_t kLaunch = 1;
    kernels::Resident work =
        CopyRing::parameters(reinterpret_cast<std::uintptr_t>(memory), 0, kLaunch, kIdle, kLife);
    void* parameters[] = {&work};
    std::uint64_t item = 0, ended = 0;
    bool silent = false;
    const auto copy = [&](const auto& put) {
        if (silent) return kPatience;
        const double begin = now_ns();
        put();
        while (!ring.is_copied(item) && !ring.has_ended(kLaunch, ended) &&
               now_ns() - begin < kPatience) {
        }
        ++item;
        const double took = now_ns() - begin;
        silent = took >= kPatience;
        return took;
    };
    const auto measure = [&](Nanoseconds& typical, const auto& put) {
        for (int i = 0; i < kWarm; ++i)
            copy(put);
        const double took = typical_of(kSamples, [&] { return copy(put); });
        if (!ring.has_ended(kLaunch, ended) && !silent)
            typical = static_cast<Nanoseconds>(took + 0.5);
    };
    if (cuda.cuModuleGetFunction(&function, module, "gantry_copy_resident") == CUDA_SUCCESS &&
        cuda.cuLaunchKernel(function, CopyRing::kBlocks, 1, 1, kernels::kResidentThreads, 1, 1, 0,
                            stream, parameters, nullptr) == CUDA_SUCCESS) {
        const auto host = static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(pinned));
        measure(kernel.resident, [&] { ring.put(item, first, second, kCopy); });
        measure(kernel.resident_out, [&] { ring.put(item, host, second, kCopy); });
        measure(kernel.resident_in, [&] { ring.enclose(item, first, pinned, kCopy); });
        cuda.wait(stream);
    }
    cuda.cuMemFreeHost(memory);
    cuda.cuModuleUnload(module);
}

}  // namespace gantry::tool
