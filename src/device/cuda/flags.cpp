// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/flags.hpp"

#include "base/log.hpp"

#include <array>

namespace gantry::device::cuda {

bool Flags::ready() {
    if (memory_.registered() || !wanted_) return memory_.registered();
    const CUresult result = driver_.cu.cuStreamWriteValue32_v2.function != nullptr
                                ? memory_.reserve(driver_, bytes_)
                                : CUDA_ERROR_NOT_SUPPORTED;
    wanted_ = result == CUDA_SUCCESS;  // one attempt
    if (!wanted_)
        log::info("cuda: no completion flags: {}; the driver is asked instead",
                  result_name(result));
    return wanted_;
}

bool Flags::write(CUstream stream, std::size_t word, std::uint32_t number) {
    return write(stream, address(word), number);
}

bool Flags::write(CUstream stream, CUdeviceptr word, std::uint32_t number) {
    const CUresult result = driver_.call(driver_.cu.cuStreamWriteValue32_v2, stream, word, number,
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

}  // namespace gantry::device::cuda
