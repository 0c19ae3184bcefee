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

CUresult PinnedMemory::reserve(Driver& driver, Bytes bytes) {
    if (driver.cu.cuMemHostGetDevicePointer_v2.function == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
    if (memory_ == nullptr) {
        void* memory =
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
        madvise(memory, bytes, MADV_DONTFORK);
        memory_ = static_cast<std::byte*>(memory);
        bytes_ = bytes;
    }
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
