// SPDX-License-Identifier: BSD-3-Clause
#include "row_copies.hpp"

namespace gantry::bench {
namespace {

// The rows of a part; where the other end is packed is the caller's.
CUDA_MEMCPY2D rows_of(const Buffer& buffer, Bytes bytes) {
    CUDA_MEMCPY2D rows{};
    rows.WidthInBytes = buffer.rows().block;
    rows.Height = buffer.rows().count(bytes);
    rows.srcPitch = rows.dstPitch = rows.WidthInBytes;
    rows.srcMemoryType = rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    return rows;
}
void from_buffer(CUDA_MEMCPY2D& rows, const Buffer& buffer, Part part) {
    rows.srcPitch = buffer.rows().stride;
    rows.srcDevice =
        address_of(buffer.message(part.message)) + buffer.rows().count(part.at) * rows.srcPitch;
}
void into_buffer(CUDA_MEMCPY2D& rows, const Buffer& buffer, Part part) {
    rows.dstPitch = buffer.rows().stride;
    rows.dstDevice =
        address_of(buffer.message(part.message)) + buffer.rows().count(part.at) * rows.dstPitch;
}
void start(const CUDA_MEMCPY2D& rows, CUstream stream) {
    driver().check(driver().cuMemcpy2DAsync_v2(&rows, stream), "cuMemcpy2DAsync",
                   rows.WidthInBytes * rows.Height);
}
void run(const CUDA_MEMCPY2D& rows) {
    start(rows, nullptr);
    driver().check(driver().cuStreamSynchronize(nullptr), "cuStreamSynchronize");
}

}  // namespace

void pack_to_host(std::byte* to, const Buffer& from, int message) {
    if (!from.rows().any()) {
        copy_to_host(to, from.message(message), from.message_bytes());
        return;
    }
    CUDA_MEMCPY2D rows = rows_of(from, from.message_bytes());
    from_buffer(rows, from, {message, 0, from.message_bytes()});
    rows.dstMemoryType = CU_MEMORYTYPE_HOST;
    rows.dstHost = to;
    run(rows);
}

void unpack_to_device(const Buffer& into, int message, const std::byte* from) {
    if (!into.rows().any()) {
        copy_to_device(into.message(message), from, into.message_bytes());
        return;
    }
    CUDA_MEMCPY2D rows = rows_of(into, into.message_bytes());
    into_buffer(rows, into, {message, 0, into.message_bytes()});
    rows.srcMemoryType = CU_MEMORYTYPE_HOST;
    rows.srcHost = from;
    run(rows);
}

void pack_on_device(CUdeviceptr to, const Buffer& from, Part part, CUstream stream) {
    CUDA_MEMCPY2D rows = rows_of(from, part.bytes);
    from_buffer(rows, from, part);
    rows.dstDevice = to;
    start(rows, stream);
}

void unpack_on_device(const Buffer& into, Part part, CUdeviceptr from, CUstream stream) {
    CUDA_MEMCPY2D rows = rows_of(into, part.bytes);
    into_buffer(rows, into, part);
    rows.srcDevice = from;
    start(rows, stream);
}

}  // namespace gantry::bench
