// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/reduce_launcher.hpp"

#include "device/cuda/copies.hpp"
#include "device/kernels/images.hpp"

#include <algorithm>

namespace gantry::device::cuda {
namespace {

// A thread has 16 bytes of each vector before another block helps; so many blocks fill the largest
// GPU, and their threads go on to what is left.
constexpr Bytes kBytesPerBlock = 16 * kernels::kReduceThreads;
constexpr Bytes kMostBlocks = 2048;

constexpr std::size_t at(ReduceKernelName name) {
    return static_cast<std::size_t>(name);
}

}  // namespace

KernelModule* ReduceLauncher::load(ReduceKernelName name) {
#define GANTRY_KERNEL_OF(name, ...) {"gantry_reduce_" #name, &kernels_[at(ReduceKernelName::name)]},
    if (name <= ReduceKernelName::bits)
        return integers_.load(kernels::reduce_integers(),
                              {GANTRY_REDUCE_INTEGERS(GANTRY_KERNEL_OF) GANTRY_KERNEL_OF(bits)},
                              gpu_)
                   ? &integers_
                   : nullptr;
    if (name <= ReduceKernelName::complex128)
        return reals_.load(kernels::reduce_reals(), {GANTRY_REDUCE_REALS(GANTRY_KERNEL_OF)}, gpu_)
                   ? &reals_
                   : nullptr;
    return pairs_.load(kernels::reduce_pairs(), {GANTRY_REDUCE_PAIRS(GANTRY_KERNEL_OF)}, gpu_)
               ? &pairs_
               : nullptr;
#undef GANTRY_KERNEL_OF
}

void ReduceLauncher::make_ready() {
    if (!integers_.is_compiled(kernels::reduce_integers())) return;
    for (const ReduceKernelName one_of_each :
         {ReduceKernelName::bits, ReduceKernelName::complex128, ReduceKernelName::double_double})
        (void)load(one_of_each);
}

bool ReduceLauncher::start(const Reduce& reduce, CUstream stream) {
    const std::optional<ReduceKernel> how = reduce_kernel(reduce.operation, reduce.element);
    if (!how || reduce.sources.empty() || reduce.sources.size() > kernels::kMostOperands ||
        reduce.also.size() >= kernels::kMostOperands)
        return false;
    kernels::ReduceWork work{};
    work.count = reduce.count * how->units;
    work.operation = static_cast<kernels::Word>(how->operation);
    work.operands = reduce.sources.size();
    kernels::Word* sources = work.source;
    CUdeviceptr odd = 0;
    for (const void* source : reduce.sources)
        odd |= * sources++ = device_address(source);
    const auto to = [&](void* destination) {
        odd |= work.destination[work.destinations++] = device_address(destination);
    };
    to(reduce.destination);
    for (void* destination : reduce.also)
        to(destination);
    if (odd % how->alignment != 0) return false;
    KernelModule* const module = load(how->name);
    if (module == nullptr) return false;
    const auto blocks = static_cast<unsigned>(
        std::clamp<Bytes>(divide_up(reduce.count * how->element, kBytesPerBlock), 1, kMostBlocks));
    void* parameters[] = {&work};
    const CUresult result = driver_.call(
        driver_.cu.cuLaunchKernel, kernels_[at(how->name)], blocks, 1u, 1u, kernels::kReduceThreads,
        1u, 1u, 0u, stream, static_cast<void**>(parameters), static_cast<void**>(nullptr));
    if (result == CUDA_SUCCESS) return true;
    module->give_up("cuLaunchKernel", result, gpu_);
    return false;
}

void ReduceLauncher::close() {
    for (KernelModule* module : {&integers_, &reals_, &pairs_})
        module->close();
    abandon();
}

void ReduceLauncher::abandon() {
    for (KernelModule* module : {&integers_, &reals_, &pairs_})
        module->abandon();
}

}  // namespace gantry::device::cuda
