// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/pinned_memory.hpp"

#include <sys/mman.h>

#include <utility>

namespace gantry::device::cuda {

PinnedMemory::PinnedMemory(PinnedMemory&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      device_(std::exchange(other.device_, 0)),
      bytes_(other.bytes_) {}

PinnedMemory::~PinnedMemory() {
    if (memory_ != nullptr) munmap(memory_, bytes_);
}

// Touching a huge page and page-locking it takes a tenth of what its small pages take.
bool PinnedMemory::map(Bytes bytes) {
    constexpr Bytes kHuge = 2 * kMiB, kWorthOne = kHuge / 2;
    const bool huge = bytes >= kWorthOne;
    if (huge) bytes = round_up(bytes, kHuge);
    const Bytes more = huge ? kHuge : 0;
    void* const memory =
        mmap(nullptr, bytes + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    auto* begin = static_cast<std::byte*>(memory);
    if (huge) {
        const auto address = reinterpret_cast<std::uintptr_t>(memory);
        const Bytes before = round_up(address, kHuge) - address;
        if (before > 0) munmap(begin, before);
        if (more > before) munmap(begin + before + bytes, more - before);
        begin += before;
        madvise(begin, bytes, MADV_HUGEPAGE);  // refused: small pages do as well
    }
    madvise(begin, bytes, MADV_DONTFORK);
    memory_ = begin;
    bytes_ = bytes;
    return true;
}

CUresult PinnedMemory::reserve(Driver& driver, Bytes bytes) {
    if (driver.cu.cuMemHostGetDevicePointer_v2.function == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    if (memory_ == nullptr && !map(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = driver.call(
        driver.cu.cuMemHostRegister_v2, static_cast<void*>(memory_),
        static_cast<std::size_t>(bytes_),
        static_cast<unsigned>(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
    if (result != CUDA_SUCCESS) return result;
    result = driver.call(driver.cu.cuMemHostGetDevicePointer_v2, &device_,
                         static_cast<void*>(memory_), 0u);
    if (result != CUDA_SUCCESS) {
        device_ = 0;
        driver.call(driver.cu.cuMemHostUnregister, static_cast<void*>(memory_));
    }
    return result;
}

void PinnedMemory::close(Driver& driver) {
    if (std::exchange(device_, 0) != 0)
        driver.call(driver.cu.cuMemHostUnregister, static_cast<void*>(memory_));
}

}  // namespace gantry::device::cuda
