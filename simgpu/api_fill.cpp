// SPDX-License-Identifier: BSD-3-Clause
// Fills. Asynchronous to the host on device memory even in their "synchronous" form, unless
// SYNC_MEMOPS is set.
#include <string.h>

#include "entry.hpp"
#include "memory.hpp"

namespace {

using simgpu::Driver;
using simgpu::Entry;
using simgpu::Op;
using simgpu::OpKind;
using simgpu::Place;
using simgpu::Residence;
using simgpu::StreamRef;

enum class Form { synchronous, asynchronous };

template <class Value>
CUresult fill(Driver& d, Entry& entry, CUdeviceptr target, std::size_t pitch, Value value,
              std::size_t width, std::size_t height, Form form, CUstream handle) {
    entry.costs(d.model.calls().launch);
    const StreamRef ref = simgpu::find_stream(d, handle);
    SIM_TRY(ref.result);
    if (width == 0 || height == 0) {
        return CUDA_SUCCESS;
    }
    const std::size_t row_bytes = width * sizeof(Value);
    if (target % sizeof(Value) != 0 || (height > 1 && pitch < row_bytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const Place place = simgpu::locate_known(d, target, (height - 1) * pitch + row_bytes);
    SIM_TRY(place.result);
    if (ref.stream->capture == simgpu::CaptureState::active) {
        return CUDA_SUCCESS;
    }
    auto op = std::make_shared<Op>();
    op->kind = OpKind::fill;
    op->bytes = row_bytes * height;
    op->enqueued = entry.began();
    op->cost = d.model.fill(op->bytes);
    op->effect = [=, to = place.bytes] {
        for (std::size_t row = 0; row < height; ++row) {
            char* start = to + row * pitch;
            if (sizeof(Value) == 1) {
                memset(start, static_cast<int>(value), width);
                continue;
            }
            for (std::size_t index = 0; index < width; ++index) {
                memcpy(start + index * sizeof(Value), &value, sizeof(Value));
            }
        }
        return CUDA_SUCCESS;
    };
    d.scheduler.enqueue(*ref.stream, op);
    const bool host_visible = place.residence == Residence::pinned;
    if (form == Form::synchronous && (host_visible || place.sync_memops)) {
        d.scheduler.wait(op);
    }
    return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemsetD8_v2(CUdeviceptr target, unsigned char value, std::size_t count) {
    SIM_ENTER(cuMemsetD8_v2);
    return fill(d, entry, target, 0, value, count, 1, Form::synchronous, nullptr);
}

CUresult cuMemsetD16_v2(CUdeviceptr target, unsigned short value, std::size_t count) {
    SIM_ENTER(cuMemsetD16_v2);
    return fill(d, entry, target, 0, value, count, 1, Form::synchronous, nullptr);
}

CUresult cuMemsetD32_v2(CUdeviceptr target, unsigned value, std::size_t count) {
    SIM_ENTER(cuMemsetD32_v2);
    return fill(d, entry, target, 0, value, count, 1, Form::synchronous, nullptr);
}

CUresult cuMemsetD8Async(CUdeviceptr target, unsigned char value, std::size_t count,
                         CUstream stream) {
    SIM_ENTER(cuMemsetD8Async);
    return fill(d, entry, target, 0, value, count, 1, Form::asynchronous, stream);
}

CUresult cuMemsetD16Async(CUdeviceptr target, unsigned short value, std::size_t count,
                          CUstream stream) {
    SIM_ENTER(cuMemsetD16Async);
    return fill(d, entry, target, 0, value, count, 1, Form::asynchronous, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr target, unsigned value, std::size_t count, CUstream stream) {
    SIM_ENTER(cuMemsetD32Async);
    return fill(d, entry, target, 0, value, count, 1, Form::asynchronous, stream);
}

CUresult cuMemsetD2D8_v2(CUdeviceptr target, std::size_t pitch, unsigned char value,
                         std::size_t width, std::size_t height) {
    SIM_ENTER(cuMemsetD2D8_v2);
    return fill(d, entry, target, pitch, value, width, height, Form::synchronous, nullptr);
}

CUresult cuMemsetD2D8Async(CUdeviceptr target, std::size_t pitch, unsigned char value,
                           std::size_t width, std::size_t height, CUstream stream) {
    SIM_ENTER(cuMemsetD2D8Async);
    return fill(d, entry, target, pitch, value, width, height, Form::asynchronous, stream);
}
