// SPDX-License-Identifier: BSD-3-Clause
#include "transfer/local_move.hpp"

#include "transfer/inside_gpu.hpp"

#include <mpi.h>

#include <algorithm>
#include <memory>

namespace gantry::transfer {
namespace {

// Packed on the host where the two ends have no copy between them: a strided source and a strided
// or device sink, or a device source and a strided sink.
bool is_packed_between(const Side& source, const Side& sink) {
    return source.contiguous() ? source.on_device() && !sink.contiguous()
                               : source.on_device() || sink.on_device() || !sink.contiguous();
}

}  // namespace

Task<Status> move_locally(Executor& executor, Context& context, Side source, Bytes source_bytes,
                          Side sink, Bytes accepted) {
    std::unique_ptr<std::byte[]> packed;
    Status status;
    if (suits_kernels(context, source, sink, accepted)) {
        status = co_await copy_by_kernels(executor, context, source, sink, accepted);
        if (status.error_class() != MPI_ERR_UNSUPPORTED_OPERATION) co_return status;
    }
    if (is_packed_between(source, sink)) {
        Result<std::unique_ptr<std::byte[]>> memory =
            host_memory(source_bytes, "a strided message to this rank itself");
        if (!memory.ok()) co_return memory.status();
        packed = std::move(*memory);
        if (!source.on_device())
            copy_out(source, 0, source_bytes, packed.get());
        else if (!source.contiguous())
            status = co_await pack_from_device(executor, context, source.piece(0, source_bytes),
                                               packed.get(), plan::Movers::copy_engines);
        else
            status = co_await device_copy(executor, context, packed.get(), source.at(0),
                                          source_bytes, source.location.gpu, device::Engine::d2h,
                                          notice_of_awaited(source_bytes));
        GANTRY_CO_TRY(status);
        source = Side{Buffer{.address = packed.get()}, device::Location{}};
    }
    if (sink.on_device() && !sink.contiguous()) {
        status = co_await unpack_to_device(executor, context, sink.piece(0, accepted), source.at(0),
                                           plan::Movers::copy_engines);
    } else if (source.on_device() || sink.on_device()) {
        const int gpu =
            std::max({source.on_device() ? source.location.gpu : -1, sink.location.gpu, 0});
        status = co_await device_copy(executor, context, sink.at(0), source.at(0), accepted, gpu,
                                      device::Engine::automatic, notice_of_awaited(accepted));
    } else if (source.contiguous()) {
        copy_in(sink, 0, accepted, source.at(0));
    } else {
        copy_out(source, 0, accepted, sink.at(0));
    }
    co_return status;
}

Task<Status> copy_local(Executor& executor, Context& context, Buffer source, Buffer sink) {
    const Bytes bytes = source.bytes();
    if (bytes == 0) co_return success();
    if (bytes > sink.bytes())
        co_return failure(MPI_ERR_TRUNCATE,
                          "{} bytes do not fit the {} bytes that they are copied to", bytes,
                          sink.bytes());
    Result<device::Location> from = context.locate(source);
    if (!from.ok()) co_return std::move(from).status();
    Result<device::Location> to = context.locate(sink);
    if (!to.ok()) co_return std::move(to).status();
    const Side source_side{source, *from}, sink_side{sink, *to};
    Status copied = co_await move_locally(executor, context, source_side, bytes, sink_side, bytes);
    co_return copied;
}

Task<Status> move_packed(Executor& executor, Context& context, Side strided, std::byte* packed,
                         int gpu_of_packed, Bytes bytes, Way way, device::Notice notice) {
    const Piece piece = strided.piece(0, bytes);
    const bool out = way == Way::from_device;
    Status status;
    if (out)
        status = co_await pack_inside_gpu(executor, context, piece, packed, notice);
    else
        status = co_await unpack_inside_gpu(executor, context, piece, packed, notice);
    if (status.error_class() != MPI_ERR_UNSUPPORTED_OPERATION) co_return status;
    Side other;
    other.buffer.address = packed;
    other.location = strided.location;
    other.location.gpu = gpu_of_packed;
    if (out)
        status = co_await move_locally(executor, context, strided, bytes, other, bytes);
    else
        status = co_await move_locally(executor, context, other, bytes, strided, bytes);
    co_return status;
}

}  // namespace gantry::transfer
