// SPDX-License-Identifier: BSD-3-Clause
//
// Both ends in this process: one local copy, or two where the ends have no copy between them.
#include "p2p/rendezvous_receive.hpp"
#include "transfer/inside_gpu.hpp"

#include <algorithm>
#include <memory>

namespace gantry::p2p {
namespace {

// Packed on the host where the two ends have no copy between them: a strided source and a strided
// or device sink, or a device source and a strided sink.
bool is_packed_between(const Side& source, const Side& sink) {
    return source.contiguous() ? source.on_device() && !sink.contiguous()
                               : source.on_device() || sink.on_device() || !sink.contiguous();
}

Task<Status> move_locally(Executor& executor, transfer::Context& context, Side source,
                          Bytes source_bytes, Side sink, Bytes accepted) {
    std::unique_ptr<std::byte[]> packed;
    Status status;
    if (transfer::suits_kernels(context, source, sink, accepted)) {
        status = co_await transfer::copy_by_kernels(executor, context, source, sink, accepted);
        if (status.error_class() != MPI_ERR_UNSUPPORTED_OPERATION) co_return status;
    }
    if (is_packed_between(source, sink)) {
        Result<std::unique_ptr<std::byte[]>> memory =
            transfer::host_memory(source_bytes, "a strided message to this rank itself");
        if (!memory.ok()) co_return memory.status();
        packed = std::move(*memory);
        if (!source.on_device())
            transfer::copy_out(source, 0, source_bytes, packed.get());
        else if (!source.contiguous())
            status = co_await transfer::pack_from_device(executor, context,
                                                         source.piece(0, source_bytes),
                                                         packed.get(), plan::Movers::copy_engines);
        else
            status = co_await transfer::device_copy(executor, context, packed.get(), source.at(0),
                                                    source_bytes, source.location.gpu,
                                                    device::Engine::d2h);
        GANTRY_CO_TRY(status);
        source = Side{Buffer{.address = packed.get()}, device::Location{}};
    }
    if (sink.on_device() && !sink.contiguous()) {
        status = co_await transfer::unpack_to_device(executor, context, sink.piece(0, accepted),
                                                     source.at(0), plan::Movers::copy_engines);
    } else if (source.on_device() || sink.on_device()) {
        const int gpu =
            std::max({source.on_device() ? source.location.gpu : -1, sink.location.gpu, 0});
        status = co_await transfer::device_copy(executor, context, sink.at(0), source.at(0),
                                                accepted, gpu, device::Engine::automatic);
    } else if (source.contiguous()) {
        transfer::copy_in(sink, 0, accepted, source.at(0));
    } else {
        transfer::copy_out(source, 0, accepted, sink.at(0));
    }
    co_return status;
}

}  // namespace

Task<Status> copy_locally(Executor& executor, Receiving& receiving) {
    OutgoingTable& table = receiving.messages.outgoing;
    const std::uint64_t id = receiving.message.rts.send_id;
    Outgoing* outgoing = table.find(id);
    if (outgoing == nullptr)
        co_return failure(MPI_ERR_INTERN, "a message to this rank itself lost its sender");
    const Side source{outgoing->buffer, outgoing->location};
    Status status = co_await move_locally(executor, receiving.context(), source, outgoing->bytes,
                                          receiving.side, receiving.accepted);
    outgoing = table.find(id);
    if (status.ok()) status = answer(receiving, wire::Cts{});
    if (outgoing != nullptr && !outgoing->finished.done()) outgoing->finished.complete(status);
    co_return status;
}

}  // namespace gantry::p2p
