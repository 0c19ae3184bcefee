// SPDX-License-Identifier: BSD-3-Clause
//
// A small copy by the kernel that stays (device/kernels/copy_resident.cu): from the moment its item
// is written into the ring until its flag shows.
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

// 0: this driver runs no such kernel.
Nanoseconds time_of_resident_copy(Cuda& cuda, CUstream stream, CUdeviceptr to, CUdeviceptr from) {
    CUmodule module = nullptr;
    CUfunction kernel = nullptr;
    if (cuda.cuModuleLoadData(&module, kernels::copy_resident_ptx()) != CUDA_SUCCESS ||
        cuda.cuModuleGetFunction(&kernel, module, "gantry_copy_resident") != CUDA_SUCCESS)
        return 0;
    std::byte* const memory = cuda.allocate_host(CopyRing::bytes());
    std::memset(memory, 0, CopyRing::bytes());
    CopyRing ring(memory);
    constexpr std::uint64_t kLaunch = 1;
    kernels::Resident work =
        CopyRing::parameters(reinterpret_cast<std::uintptr_t>(memory), 0, kLaunch, kIdle, kLife);
    void* parameters[] = {&work};
    std::uint64_t item = 0, ended = 0;
    bool silent = false;
    const auto copy = [&] {
        if (silent) return kPatience;
        const double begin = now_ns();
        ring.put(item, to, from, kCopy);
        while (!ring.is_copied(item) && !ring.has_ended(kLaunch, ended) &&
               now_ns() - begin < kPatience) {
        }
        ++item;
        const double took = now_ns() - begin;
        silent = took >= kPatience;
        return took;
    };
    Nanoseconds typical = 0;
    if (cuda.cuLaunchKernel(kernel, CopyRing::kBlocks, 1, 1, kernels::kResidentThreads, 1, 1, 0,
                            stream, parameters, nullptr) == CUDA_SUCCESS) {
        for (int i = 0; i < kWarm; ++i)
            copy();
        const double took = typical_of(kSamples, copy);
        if (!ring.has_ended(kLaunch, ended) && !silent)
            typical = static_cast<Nanoseconds>(took + 0.5);
        cuda.wait(stream);
    }
    cuda.cuMemFreeHost(memory);
    return typical;
}

}  // namespace gantry::tool
