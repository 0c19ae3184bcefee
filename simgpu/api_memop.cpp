// SPDX-License-Identifier: BSD-3-Clause
// Stream memory operations: a stream writes a value, or waits for one, in device or page-locked
// memory.
#include <algorithm>

#include "entry.hpp"
#include "memory.hpp"

namespace {

using simgpu::Driver;
using simgpu::Op;
using simgpu::OpKind;
using simgpu::Place;
using simgpu::StreamRef;

template <class Value>
std::atomic<Value>& word(char* place) {
    return *reinterpret_cast<std::atomic<Value>*>(place);
}

template <class Value>
bool satisfied(Value seen, Value wanted, unsigned condition) {
    switch (condition) {
        case CU_STREAM_WAIT_VALUE_GEQ:
            return static_cast<std::make_signed_t<Value>>(seen - wanted) >= 0;
        case CU_STREAM_WAIT_VALUE_EQ: return seen == wanted;
        case CU_STREAM_WAIT_VALUE_AND: return (seen & wanted) != 0;
        default: return static_cast<Value>(~(seen | wanted)) != 0;
    }
}

template <class Value>
Place target(Driver& d, CUdeviceptr address) {
    Place place = simgpu::locate_known(d, address, sizeof(Value));
    if (address % sizeof(Value) != 0) {
        place.result = CUDA_ERROR_INVALID_VALUE;
    }
    return place;
}

template <class Value>
CUresult write(Driver& d, CUstream handle, CUdeviceptr address, Value value, unsigned flags) {
    const StreamRef ref = simgpu::find_stream(d, handle);
    SIM_TRY(ref.result);
    const Place place = target<Value>(d, address);
    SIM_TRY(place.result);
    // The flag without a barrier is refused by the hardware that was measured, too.
    if (flags != CU_STREAM_WRITE_VALUE_DEFAULT) {
        return flags == CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER ? CUDA_ERROR_NOT_SUPPORTED
                                                                : CUDA_ERROR_INVALID_VALUE;
    }
    if (ref.stream->capture == simgpu::CaptureState::active) {
        return CUDA_SUCCESS;
    }
    auto op = std::make_shared<Op>();
    op->kind = OpKind::value_write;
    op->cost = d.model.value_write();
    op->effect = [place, value, stream = ref.stream] {
        // Whoever polls this word with acquire also sees what the stream did before.
        simgpu::sanitizer::release(place.bytes);
        word<Value>(place.bytes).store(value, std::memory_order_release);
        return CUDA_SUCCESS;
    };
    d.scheduler.enqueue(*ref.stream, op);
    return CUDA_SUCCESS;
}

template <class Value>
CUresult wait(Driver& d, CUstream handle, CUdeviceptr address, Value value, unsigned flags) {
    const StreamRef ref = simgpu::find_stream(d, handle);
    SIM_TRY(ref.result);
    const Place place = target<Value>(d, address);
    SIM_TRY(place.result);
    const unsigned condition = flags & ~static_cast<unsigned>(CU_STREAM_WAIT_VALUE_FLUSH);
    if (condition > CU_STREAM_WAIT_VALUE_NOR) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (ref.stream->capture == simgpu::CaptureState::active) {
        return CUDA_SUCCESS;
    }
    auto op = std::make_shared<Op>();
    op->kind = OpKind::value_wait;
    op->ready = [place, value, condition] {
        return satisfied(word<Value>(place.bytes).load(std::memory_order_acquire), value,
                         condition);
    };
    d.scheduler.enqueue(*ref.stream, op);
    return CUDA_SUCCESS;
}

CUresult one_of_batch(Driver& d, CUstream stream, const CUstreamBatchMemOpParams& operation) {
    const CUstreamMemOpValueParams_st& value = operation.waitValue;
    switch (operation.operation) {
        case CU_STREAM_MEM_OP_WAIT_VALUE_32:
            return wait(d, stream, value.address, static_cast<std::uint32_t>(value.value64),
                        value.flags);
        case CU_STREAM_MEM_OP_WAIT_VALUE_64:
            return wait(d, stream, value.address, value.value64, value.flags);
        case CU_STREAM_MEM_OP_WRITE_VALUE_32:
            return write(d, stream, value.address, static_cast<std::uint32_t>(value.value64),
                         value.flags);
        case CU_STREAM_MEM_OP_WRITE_VALUE_64:
            return write(d, stream, value.address, value.value64, value.flags);
        case CU_STREAM_MEM_OP_BARRIER:
        case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
            return CUDA_SUCCESS;  // writes are visible in stream order here
    }
    return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                 unsigned flags) {
    SIM_ENTER(cuStreamWriteValue32_v2);
    return write(d, stream, address, value, flags);
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                 unsigned flags) {
    SIM_ENTER(cuStreamWriteValue64_v2);
    return write(d, stream, address, value, flags);
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                unsigned flags) {
    SIM_ENTER(cuStreamWaitValue32_v2);
    return wait(d, stream, address, value, flags);
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                unsigned flags) {
    SIM_ENTER(cuStreamWaitValue64_v2);
    return wait(d, stream, address, value, flags);
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned count,
                               CUstreamBatchMemOpParams* operations, unsigned flags) {
    SIM_ENTER(cuStreamBatchMemOp_v2);
    if (count == 0 || count > 256 || operations == nullptr || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (unsigned index = 0; index < count; ++index) {
        SIM_TRY(one_of_batch(d, stream, operations[index]));
    }
    return CUDA_SUCCESS;
}
