// SPDX-License-Identifier: BSD-3-Clause
#include "transfer/mover.hpp"

#include "base/streaming_copy.hpp"
#include "plan/p2p_model.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace gantry::transfer {
namespace {

void move(std::byte* to, const std::byte* from, Bytes bytes, Stores stores) {
    if (bytes == 0) return;  // an empty buffer may be a null pointer, which memcpy does not take
    if (stores == Stores::streaming)
        streaming_copy(to, from, bytes);
    else
        std::memcpy(to, from, bytes);
}

}  // namespace

Buffer bytes_buffer(const void* address, Bytes bytes) {
    static const layout::Layout layout = layout::contiguous_layout(1);  // for everybody, immutable
    return {const_cast<void*>(address), bytes, &layout};
}

transport::Extent extent_of(const device::Location& location, void* address, Bytes bytes) {
    transport::Extent extent{.address = address, .bytes = bytes};
    if (!location.on_device()) return extent;
    extent.place = transport::MemoryPlace::device;
    extent.allocation = location.buffer_id;
    extent.allocation_base = location.base;
    extent.allocation_bytes = location.size;
    return extent;
}

void copy_out(const Side& side, Bytes offset, Bytes bytes, std::byte* to, Stores stores) {
    if (side.contiguous())
        move(to, side.at(offset), bytes, stores);
    else
        layout::pack(*side.buffer.layout, side.buffer.address, offset, bytes, to);
}

void copy_in(const Side& side, Bytes offset, Bytes bytes, const std::byte* from, Stores stores) {
    if (side.contiguous())
        move(side.at(offset), from, bytes, stores);
    else
        layout::unpack(*side.buffer.layout, side.buffer.address, offset, bytes, from);
}

Task<Status> device_copy(Executor& executor, Context& context, device::Copy copy) {
    if (copy.bytes == 0) co_return success();
    Completion done(executor);
    const Nanoseconds begin = context.begins();
    context.device.copy(copy, done);
    Status status = co_await done;
    context.moved(name(copy.engine), begin, copy.gpu, copy.bytes);
    co_return status;
}

Task<Status> device_copy(Executor& executor, Context& context, void* destination,
                         const void* source, Bytes bytes, int gpu, device::Engine engine,
                         device::Notice notice) {
    device::Copy copy;
    copy.destination = destination;
    copy.source = source;
    copy.bytes = bytes;
    copy.gpu = gpu;
    copy.engine = engine;
    copy.notice = notice;
    return device_copy(executor, context, copy);
}

device::Notice notice_of_awaited(Bytes bytes) {
    return notice_of(plan::completion_of_awaited(bytes));
}

Task<Status> copy(Executor& executor, Context& context, void* destination, const void* source,
                  Bytes bytes) {
    if (bytes == 0) co_return success();
    if (context.device.active()) {
        auto to = context.device.classify(destination, bytes);
        if (!to.ok()) co_return to.status();
        auto from = context.device.classify(source, bytes);
        if (!from.ok()) co_return from.status();
        if (const int gpu = std::max(to->gpu, from->gpu); gpu >= 0) {
            context.arbiter.use(gpu);
            Status status =
                co_await device_copy(executor, context, destination, source, bytes, gpu,
                                     device::Engine::automatic, notice_of_awaited(bytes));
            co_return status;
        }
    }
    std::copy_n(static_cast<const std::byte*>(source), bytes, static_cast<std::byte*>(destination));
    co_return success();
}

Task<Status> copy_inside(Executor& executor, Context& context, void* destination,
                         const void* source, Bytes bytes, int gpu, const plan::Plan& plan) {
    const device::GpuFacts facts = context.device.gpu_facts(gpu);
    const Nanoseconds begin = executor.now();
    const GpuArbiter::Watch watch(context.arbiter);
    const std::uint64_t absences = context.arbiter.absences();
    Status status = co_await device_copy(executor, context, destination, source, bytes, gpu,
                                         engine_of(plan), notice_of(plan));
    const Nanoseconds now = executor.now();
    const bool watched = context.arbiter.absences() == absences;
    const Nanoseconds expected =
        facts.copy_latency + plan::transfer_time(bytes, facts.d2d_bytes_per_second);
    context.arbiter.shared(gpu).copied(now - begin, expected, facts.queue_turn, now, watched);
    co_return status;
}

Result<std::unique_ptr<std::byte[]>> host_memory(Bytes bytes, const char* what) {
    std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[bytes]);
    if (memory == nullptr)
        return failure(MPI_ERR_NO_MEM, "no memory for {} bytes of {}", bytes, what);
    return memory;
}

}  // namespace gantry::transfer
