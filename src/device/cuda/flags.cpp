// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/flags.hpp"

#include "base/log.hpp"

#include <sys/mman.h>

#include <array>

namespace gantry::device::cuda {

Flags::~Flags() {
    if (memory_ != nullptr) munmap(memory_, bytes_);
}

bool Flags::ready() {
    if (registered_ || !wanted_) return registered_;
    wanted_ = false;  // one attempt
    auto& cu = driver_.cu;
    if (cu.cuStreamWriteValue32_v2.function == nullptr ||
        cu.cuMemHostGetDevicePointer_v2.function == nullptr)
        return false;
    if (memory_ == nullptr) {
        void* memory =
            mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) return false;
        madvise(memory, bytes_, MADV_DONTFORK);
        memory_ = static_cast<std::byte*>(memory);
    }
    CUresult result = driver_.call(
        cu.cuMemHostRegister_v2, static_cast<void*>(memory_), bytes_,
        static_cast<unsigned>(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
    if (result == CUDA_SUCCESS) {
        registered_ = true;
        result = driver_.call(cu.cuMemHostGetDevicePointer_v2, &device_,
                              static_cast<void*>(memory_), 0u);
        if (result != CUDA_SUCCESS) close();
    }
    if (!registered_)
        log::info("cuda: no completion flags: {}; the driver is asked instead",
                  result_name(result));
    wanted_ = registered_;
    return registered_;
}

bool Flags::write(CUstream stream, std::size_t word, std::uint32_t number) {
    const CUresult result =
        driver_.call(driver_.cu.cuStreamWriteValue32_v2, stream, address(word), number,
                     static_cast<unsigned>(CU_STREAM_WRITE_VALUE_DEFAULT));
    if (result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_INVALID_VALUE) {
        log::info("cuda: no completion flags: cuStreamWriteValue32: {}", result_name(result));
        wanted_ = false;
        close();
    }
    return result == CUDA_SUCCESS;
}

bool Flags::write_behind_word(CUstream stream, std::size_t word, std::uint32_t number,
                              CUdeviceptr to, std::uint64_t value, Bytes bytes) {
    std::array<CUstreamBatchMemOpParams, 2> writes{};
    writes[0].writeValue = {
        bytes == 4 ? CU_STREAM_MEM_OP_WRITE_VALUE_32 : CU_STREAM_MEM_OP_WRITE_VALUE_64, to, value,
        CU_STREAM_WRITE_VALUE_DEFAULT, 0};
    // Comes with a fence: who sees the flag may use the value.
    writes[1].writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_32, address(word), number,
                            CU_STREAM_WRITE_VALUE_DEFAULT, 0};
    const CUresult result = driver_.call(driver_.cu.cuStreamBatchMemOp_v2, stream,
                                         static_cast<unsigned>(writes.size()), writes.data(), 0u);
    words_refused_ = result != CUDA_SUCCESS;
    if (words_refused_)
        log::info("cuda: words are copied, not written: cuStreamBatchMemOp: {}",
                  result_name(result));
    return !words_refused_;
}

void Flags::close() {
    if (!registered_) return;
    registered_ = false;
    driver_.call(driver_.cu.cuMemHostUnregister, static_cast<void*>(memory_));
}

}  // namespace gantry::device::cuda
