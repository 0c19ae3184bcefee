// SPDX-License-Identifier: BSD-3-Clause
#include "transfer/inside_gpu.hpp"

#include "transfer/bounce_buffer.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace gantry::transfer {
namespace {

// Memory aside is borrowed for so much, and used again for what follows.
constexpr Bytes kMostAtOnce = 32 * kMiB;

bool strided_on_device(const Side& side) {
    return side.location.on_device() && !side.contiguous();
}

Status no_memory_aside() {
    return failure(MPI_ERR_UNSUPPORTED_OPERATION, "no device memory to pack into");
}

Task<Status> plain_copy(Executor& executor, Context& context, std::byte* to, const std::byte* from,
                        Bytes bytes, int gpu) {
    return device_copy(executor, context, to, from, bytes, std::max(gpu, 0),
                       device::Engine::automatic, notice_of_awaited(bytes));
}

// Out of a strided device end to contiguous memory.
Task<Status> pack_to(Executor& executor, Context& context, Side source, Bytes first, Bytes bytes,
                     std::byte* to, int gpu_of_sink) {
    if (gpu_of_sink == source.location.gpu) {
        Status status = co_await pack_inside_gpu(executor, context, source.piece(first, bytes), to,
                                                 notice_of_awaited(bytes));
        co_return status;
    }
    const BounceBuffer packed(context.device, source.at(0), bytes, BounceBuffer::Place::gpu);
    if (packed.bytes() == nullptr) co_return no_memory_aside();
    Status status = co_await pack_inside_gpu(executor, context, source.piece(first, bytes),
                                             packed.bytes(), notice_of_awaited(bytes));
    GANTRY_CO_TRY(status);
    status = co_await plain_copy(executor, context, to, packed.bytes(), bytes, source.location.gpu);
    co_return status;
}

// Contiguous memory into a strided device end.
Task<Status> unpack_from(Executor& executor, Context& context, Side sink, Bytes first, Bytes bytes,
                         std::byte* from, int gpu_of_source) {
    if (gpu_of_source == sink.location.gpu) {
        Status status = co_await unpack_inside_gpu(executor, context, sink.piece(first, bytes),
                                                   from, notice_of_awaited(bytes));
        co_return status;
    }
    const BounceBuffer packed(context.device, sink.at(0), bytes, BounceBuffer::Place::gpu);
    if (packed.bytes() == nullptr) co_return no_memory_aside();
    Status status =
        co_await plain_copy(executor, context, packed.bytes(), from, bytes, sink.location.gpu);
    GANTRY_CO_TRY(status);
    status = co_await unpack_inside_gpu(executor, context, sink.piece(first, bytes), packed.bytes(),
                                        notice_of_awaited(bytes));
    co_return status;
}

int gpu_of(const Side& side) {
    return side.location.on_device() ? side.location.gpu : -1;
}

// Both ends are strided: packed on the source's GPU, or on the host where the source is there.
Task<Status> repack(Executor& executor, Context& context, Side source, Side sink, Bytes first,
                    Bytes bytes) {
    Status status;
    if (!strided_on_device(source) || !strided_on_device(sink)) {
        Result<std::unique_ptr<std::byte[]>> memory =
            host_memory(bytes, "a strided message to this rank itself");
        if (!memory.ok()) co_return memory.status();
        std::byte* const on_host = memory->get();
        if (strided_on_device(sink)) {
            copy_out(source, first, bytes, on_host);
            status = co_await unpack_from(executor, context, sink, first, bytes, on_host, -1);
            co_return status;
        }
        status = co_await pack_to(executor, context, source, first, bytes, on_host, -1);
        GANTRY_CO_TRY(status);
        copy_in(sink, first, bytes, on_host);
        co_return success();
    }
    const BounceBuffer packed(context.device, source.at(0), bytes, BounceBuffer::Place::gpu);
    if (packed.bytes() == nullptr) co_return no_memory_aside();
    status = co_await pack_inside_gpu(executor, context, source.piece(first, bytes), packed.bytes(),
                                      notice_of_awaited(bytes));
    GANTRY_CO_TRY(status);
    status = co_await unpack_from(executor, context, sink, first, bytes, packed.bytes(),
                                  source.location.gpu);
    co_return status;
}

}  // namespace

bool suits_kernels(Context& context, const Side& source, const Side& sink, Bytes bytes) {
    const bool packs = strided_on_device(source), unpacks = strided_on_device(sink);
    if (!context.tuning.kernels || bytes == 0 || (!packs && !unpacks)) return false;
    for (const Side* side : {&source, &sink})
        if (side->location.kind == device::MemoryKind::managed) return false;
    // Copy engines would go through host memory.
    if (source.location.on_device() && sink.location.on_device()) return true;
    return packs ? pays_aside(context, source.piece(0, bytes), Way::from_device)
                 : pays_aside(context, sink.piece(0, bytes), Way::to_device);
}

Task<Status> copy_by_kernels(Executor& executor, Context& context, Side source, Side sink,
                             Bytes bytes) {
    Status status;
    for (Bytes first = 0; first < bytes; first += kMostAtOnce) {
        const Bytes here = std::min(kMostAtOnce, bytes - first);
        if (sink.contiguous())
            status = co_await pack_to(executor, context, source, first, here, sink.at(first),
                                      gpu_of(sink));
        else if (source.contiguous())
            status = co_await unpack_from(executor, context, sink, first, here, source.at(first),
                                          gpu_of(source));
        else
            status = co_await repack(executor, context, source, sink, first, here);
        GANTRY_CO_TRY(status);
    }
    co_return success();
}

}  // namespace gantry::transfer
