// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/copy_calls.hpp"

namespace gantry::device::cuda {
namespace {

// A small host-to-device copy is done by the compute queue, and waits for its turn when processes
// share the GPU; as a copy of two rows it is done by the copy engine (docs/design/time-sliced-gpu.md). The
// last byte of an odd size goes with the one before it, which is written twice. One byte has no two
// rows.
Issued issue_two_rows(Driver& driver, const Copy& copy, CUstream stream) {
    auto& cu = driver.cu;
    if (copy.bytes < 2) {
        const CUresult result =
            driver.call(cu.cuMemcpyHtoDAsync_v2, device_address(copy.destination), copy.source,
                        copy.bytes, stream);
        return {result, result == CUDA_SUCCESS ? 1 : 0, "cuMemcpyHtoDAsync"};
    }
    CUDA_MEMCPY2D rows{};
    rows.srcMemoryType = CU_MEMORYTYPE_HOST;
    rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    rows.Height = 2;
    Issued issued{CUDA_SUCCESS, 0, "cuMemcpy2DAsync"};
    for (const bool last : {false, true}) {
        if (last && copy.bytes % 2 == 0) break;
        const Bytes offset = last ? copy.bytes - 2 : 0;
        rows.WidthInBytes = rows.srcPitch = rows.dstPitch = last ? 1 : copy.bytes / 2;
        rows.srcHost = static_cast<const std::byte*>(copy.source) + offset;
        rows.dstDevice = device_address(copy.destination) + offset;
        issued.result =
            driver.call(cu.cuMemcpy2DAsync_v2, static_cast<const CUDA_MEMCPY2D*>(&rows), stream);
        if (issued.result != CUDA_SUCCESS) break;
        ++issued.started;
    }
    return issued;
}

CUresult issue_set(Driver& driver, const Copy& copy, const Rows& rows, bool out, CUstream stream) {
    GANTRY_ASSERT(rows.planes == 1);  // planes are for kernels
    auto& cu = driver.cu;
    auto* const to = static_cast<std::byte*>(copy.destination) + rows.destination;
    const auto* const from = static_cast<const std::byte*>(copy.source) + rows.source;
    if (rows.count == 1 && copy.engine == Engine::h2d_2d) {
        Copy row = copy;
        row.destination = to;
        row.source = from;
        row.bytes = rows.width;
        return issue_two_rows(driver, row, stream).result;
    }
    if (rows.count == 1)
        return out ? driver.call(cu.cuMemcpyDtoHAsync_v2, static_cast<void*>(to),
                                 device_address(from), rows.width, stream)
                   : driver.call(cu.cuMemcpyHtoDAsync_v2, device_address(to),
                                 static_cast<const void*>(from), rows.width, stream);
    CUDA_MEMCPY2D set{};
    set.srcMemoryType = out ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    set.dstMemoryType = out ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    if (out) {
        set.srcDevice = device_address(from);
        set.dstHost = to;
    } else {
        set.srcHost = from;
        set.dstDevice = device_address(to);
    }
    set.srcPitch = rows.source_pitch;
    set.dstPitch = rows.destination_pitch;
    set.Height = rows.count;
    set.WidthInBytes = rows.width;
    return driver.call(cu.cuMemcpy2DAsync_v2, static_cast<const CUDA_MEMCPY2D*>(&set), stream);
}

RowKernel::Host host_of(Queue queue) {
    switch (queue) {
        case Queue::d2h: return RowKernel::Host::destination;
        case Queue::h2d: return RowKernel::Host::source;
        case Queue::d2d:
        case Queue::peer: break;
    }
    return RowKernel::Host::none;
}

Issued issue_rows(Driver& driver, RowKernel& row_kernel, const Order& order, CUstream stream) {
    const Copy& copy = order.copy;
    const bool out = order.queue == Queue::d2h;
    Issued issued{CUDA_SUCCESS, 0, "cuMemcpy2DAsync"};
    if (copy.engine == Engine::kernel) {
        if (order.unreached || !row_kernel.start(copy, host_of(order.queue), stream, issued.tables))
            return {CUDA_ERROR_NOT_SUPPORTED, 0, nullptr};
        issued.started = 1;
        return issued;
    }
    for (const Rows& rows : copy.rows) {
        issued.result = issue_set(driver, copy, rows, out, stream);
        if (issued.result != CUDA_SUCCESS) break;
        ++issued.started;
    }
    return issued;
}

}  // namespace

Issued issue(Driver& driver, RowKernel& row_kernel, const Order& order, CUstream stream) {
    const Copy& copy = order.copy;
    const CUdeviceptr destination = device_address(copy.destination);
    const CUdeviceptr source = device_address(copy.source);
    auto& cu = driver.cu;
    const auto once = [](CUresult result, const char* call) {
        return Issued{result, result == CUDA_SUCCESS ? 1 : 0, call};
    };
    if (!copy.rows.empty()) return issue_rows(driver, row_kernel, order, stream);
    if (order.destination_context != nullptr && order.source_context != nullptr)
        return once(driver.call(cu.cuMemcpyPeerAsync, destination, order.destination_context,
                                source, order.source_context, copy.bytes, stream),
                    "cuMemcpyPeerAsync");
    switch (copy.engine) {
        case Engine::d2h:
            return once(
                driver.call(cu.cuMemcpyDtoHAsync_v2, copy.destination, source, copy.bytes, stream),
                "cuMemcpyDtoHAsync");
        case Engine::h2d:
            return once(
                driver.call(cu.cuMemcpyHtoDAsync_v2, destination, copy.source, copy.bytes, stream),
                "cuMemcpyHtoDAsync");
        case Engine::h2d_2d: return issue_two_rows(driver, copy, stream);
        case Engine::d2d:
        case Engine::peer:
        case Engine::fused:
            return once(
                driver.call(cu.cuMemcpyDtoDAsync_v2, destination, source, copy.bytes, stream),
                "cuMemcpyDtoDAsync");
        case Engine::kernel:
        case Engine::bar:
        case Engine::automatic: break;
    }
    return once(driver.call(cu.cuMemcpyAsync, destination, source, copy.bytes, stream),
                "cuMemcpyAsync");
}

}  // namespace gantry::device::cuda
