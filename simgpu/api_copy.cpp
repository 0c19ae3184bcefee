// SPDX-License-Identifier: BSD-3-Clause
// The copy entry points: each fills a CopyRequest.
#include "copy.hpp"
#include "entry.hpp"

namespace {

using simgpu::Address;
using simgpu::CopyRequest;
using simgpu::Driver;
using simgpu::Entry;
using simgpu::Movement;
using simgpu::Return;
using simgpu::Side;

struct End {
    Address address;
    Side side;
};
End device(CUdeviceptr address) {
    return {address, Side::device};
}
End any(CUdeviceptr address) {
    return {address, Side::any};
}
End host(const void* address) {
    return {reinterpret_cast<Address>(address), Side::any};
}

CUresult linear(Driver& d, Entry& entry, End target, End source, std::size_t bytes, Return returns,
                CUstream stream, bool further = false) {
    entry.costs(further ? d.model.calls().further_copy : d.model.calls().copy);
    CopyRequest request;
    request.target = target.address;
    request.source = source.address;
    request.target_side = target.side;
    request.source_side = source.side;
    request.movement.width = bytes;
    request.returns = returns;
    request.called = entry.began();
    request.further = further;
    return simgpu::copy(d, request, stream);
}

// One end of a 2D or 3D description; arrays are not modelled.
bool end_of(CUmemorytype type, const void* host_address, CUdeviceptr device_address, End* end) {
    switch (type) {
        case CU_MEMORYTYPE_HOST: *end = host(host_address); return true;
        case CU_MEMORYTYPE_DEVICE: *end = device(device_address); return true;
        case CU_MEMORYTYPE_UNIFIED: *end = any(device_address); return true;
        case CU_MEMORYTYPE_ARRAY: break;
    }
    return false;
}

// A description without a third dimension is the same with Depth 1.
CUDA_MEMCPY3D widen(const CUDA_MEMCPY2D& flat) {
    CUDA_MEMCPY3D copy{};
    copy.srcXInBytes = flat.srcXInBytes;
    copy.srcY = flat.srcY;
    copy.srcMemoryType = flat.srcMemoryType;
    copy.srcHost = flat.srcHost;
    copy.srcDevice = flat.srcDevice;
    copy.srcPitch = flat.srcPitch;
    copy.dstXInBytes = flat.dstXInBytes;
    copy.dstY = flat.dstY;
    copy.dstMemoryType = flat.dstMemoryType;
    copy.dstHost = flat.dstHost;
    copy.dstDevice = flat.dstDevice;
    copy.dstPitch = flat.dstPitch;
    copy.WidthInBytes = flat.WidthInBytes;
    copy.Height = flat.Height;
    copy.Depth = 1;
    return copy;
}

CUresult box(Driver& d, Entry& entry, const CUDA_MEMCPY3D& copy, Return returns, CUstream stream) {
    entry.costs(d.model.calls().copy);
    End target{}, source{};
    if (!end_of(copy.dstMemoryType, copy.dstHost, copy.dstDevice, &target) ||
        !end_of(copy.srcMemoryType, copy.srcHost, copy.srcDevice, &source)) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    const bool rows = copy.Height > 1 || copy.Depth > 1;
    if (rows && (copy.dstPitch < copy.WidthInBytes || copy.srcPitch < copy.WidthInBytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Movement movement;
    movement.width = copy.WidthInBytes;
    movement.height = copy.Height;
    movement.depth = copy.Depth;
    movement.target_pitch = copy.dstPitch;
    movement.source_pitch = copy.srcPitch;
    movement.target_slice = copy.dstPitch * copy.dstHeight;
    movement.source_slice = copy.srcPitch * copy.srcHeight;
    CopyRequest request;
    request.movement = movement;
    request.target_side = target.side;
    request.source_side = source.side;
    request.target = target.address + copy.dstXInBytes + copy.dstY * copy.dstPitch +
                     copy.dstZ * movement.target_slice;
    request.source = source.address + copy.srcXInBytes + copy.srcY * copy.srcPitch +
                     copy.srcZ * movement.source_slice;
    request.returns = returns;
    request.called = entry.began();
    return simgpu::copy(d, request, stream);
}

CUresult batch(Driver& d, Entry& entry, const CUdeviceptr* targets, const CUdeviceptr* sources,
               const std::size_t* bytes, std::size_t count, const CUmemcpyAttributes* attributes,
               std::size_t attribute_count, CUstream stream, std::size_t* fail_index) {
    if (stream == nullptr || stream == CU_STREAM_LEGACY || count == 0 || attribute_count == 0 ||
        attributes == nullptr || attributes->srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_INVALID) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (std::size_t index = 0; index < count; ++index) {
        const CUresult result = linear(d, entry, any(targets[index]), any(sources[index]),
                                       bytes[index], Return::early, stream, index > 0);
        if (result != CUDA_SUCCESS) {
            if (fail_index != nullptr) {
                *fail_index = index;
            }
            return result;
        }
    }
    return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemcpy(CUdeviceptr target, CUdeviceptr source, std::size_t bytes) {
    SIM_ENTER(cuMemcpy);
    return linear(d, entry, any(target), any(source), bytes, Return::when_done, nullptr);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr target, const void* source, std::size_t bytes) {
    SIM_ENTER(cuMemcpyHtoD_v2);
    return linear(d, entry, device(target), host(source), bytes, Return::when_done, nullptr);
}

CUresult cuMemcpyDtoH_v2(void* target, CUdeviceptr source, std::size_t bytes) {
    SIM_ENTER(cuMemcpyDtoH_v2);
    return linear(d, entry, host(target), device(source), bytes, Return::when_done, nullptr);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr target, CUdeviceptr source, std::size_t bytes) {
    SIM_ENTER(cuMemcpyDtoD_v2);
    return linear(d, entry, device(target), device(source), bytes, Return::when_done, nullptr);
}

CUresult cuMemcpyPeer(CUdeviceptr target, CUcontext, CUdeviceptr source, CUcontext,
                      std::size_t bytes) {
    SIM_ENTER(cuMemcpyPeer);
    return linear(d, entry, device(target), device(source), bytes, Return::when_done, nullptr);
}

CUresult cuMemcpyAsync(CUdeviceptr target, CUdeviceptr source, std::size_t bytes, CUstream stream) {
    SIM_ENTER(cuMemcpyAsync);
    return linear(d, entry, any(target), any(source), bytes, Return::early, stream);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr target, const void* source, std::size_t bytes,
                              CUstream stream) {
    SIM_ENTER(cuMemcpyHtoDAsync_v2);
    return linear(d, entry, device(target), host(source), bytes, Return::early, stream);
}

CUresult cuMemcpyDtoHAsync_v2(void* target, CUdeviceptr source, std::size_t bytes,
                              CUstream stream) {
    SIM_ENTER(cuMemcpyDtoHAsync_v2);
    return linear(d, entry, host(target), device(source), bytes, Return::early, stream);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr target, CUdeviceptr source, std::size_t bytes,
                              CUstream stream) {
    SIM_ENTER(cuMemcpyDtoDAsync_v2);
    return linear(d, entry, device(target), device(source), bytes, Return::early, stream);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr target, CUcontext, CUdeviceptr source, CUcontext,
                           std::size_t bytes, CUstream stream) {
    SIM_ENTER(cuMemcpyPeerAsync);
    return linear(d, entry, device(target), device(source), bytes, Return::early, stream);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) {
    SIM_ENTER(cuMemcpy2D_v2);
    return box(d, entry, widen(*copy), Return::when_done, nullptr);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) {
    SIM_ENTER(cuMemcpy2DUnaligned_v2);
    return box(d, entry, widen(*copy), Return::when_done, nullptr);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
    SIM_ENTER(cuMemcpy2DAsync_v2);
    return box(d, entry, widen(*copy), Return::early, stream);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) {
    SIM_ENTER(cuMemcpy3D_v2);
    return box(d, entry, *copy, Return::when_done, nullptr);
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) {
    SIM_ENTER(cuMemcpy3DAsync_v2);
    return box(d, entry, *copy, Return::early, stream);
}

CUresult cuMemcpyBatchAsync(CUdeviceptr* targets, CUdeviceptr* sources, std::size_t* bytes,
                            std::size_t count, CUmemcpyAttributes* attributes, std::size_t*,
                            std::size_t attribute_count, std::size_t* fail_index, CUstream stream) {
    SIM_ENTER(cuMemcpyBatchAsync);
    return batch(d, entry, targets, sources, bytes, count, attributes, attribute_count, stream,
                 fail_index);
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* targets, CUdeviceptr* sources, std::size_t* bytes,
                               std::size_t count, CUmemcpyAttributes* attributes, std::size_t*,
                               std::size_t attribute_count, CUstream stream) {
    SIM_ENTER(cuMemcpyBatchAsync_v2);
    return batch(d, entry, targets, sources, bytes, count, attributes, attribute_count, stream,
                 nullptr);
}
