// SPDX-License-Identifier: BSD-3-Clause
//
// Messages at the target. Those of one origin are executed in the order in which they were sent: at
// once inside progress() where that takes loads and stores only; else they wait, with copies of what
// they carry, for a task that executes one after the other.
#include "rma/gpu_change.hpp"
#include "rma/windows.hpp"

#include "base/log.hpp"
#include "transfer/mover.hpp"

namespace gantry::rma {
namespace {

bool changes(wire::Kind kind) {
    return kind == wire::kAccumulate || kind == wire::kFetch || kind == wire::kCompareAndSwap;
}

// What the header of an operation says.
struct Request {
    wire::Span span;
    std::uint64_t id = 0;
    Change change;
};

Request request_of(wire::Kind kind, transport::ConstSpan header, transport::ConstSpan payload) {
    Request request;
    if (kind == wire::kPut) {
        request.span = wire::read<wire::Put>(header).span;
    } else if (kind == wire::kGet) {
        const auto get = wire::read<wire::Get>(header);
        request.span = get.span;
        request.id = get.id;
    } else if (kind == wire::kCompareAndSwap) {
        const auto swap = wire::read<wire::CompareAndSwap>(header);
        request.span = swap.span;
        request.id = swap.id;
        request.change.verb = Verb::compare_and_swap;
        request.change.items.size = request.change.items.extent =
            static_cast<std::uint32_t>(swap.span.bytes);
        request.change.operand = payload.data();
        request.change.compare = payload.data() + swap.span.bytes;
    } else {
        const auto accumulate = wire::read<wire::Accumulate>(header);
        request.span = accumulate.span;
        request.id = accumulate.id;
        request.change.verb = kind == wire::kFetch ? Verb::fetch : Verb::accumulate;
        request.change.operation = static_cast<layout::Operation>(accumulate.operation);
        request.change.items = items_of(static_cast<layout::Element>(accumulate.element));
        request.change.operand = payload.data();
    }
    return request;
}

}  // namespace

void Inbound::arrive(int from, wire::Kind kind, transport::ConstSpan header,
                     transport::ConstSpan payload) {
    Target& of = target(from);
    switch (kind) {
        // To this rank as an origin.
        case wire::kAnswer:
            return window.outbound.on_answer(wire::read<wire::Answer>(header), payload);
        case wire::kExecuted:
            return window.outbound.on_executed(from, wire::read<wire::Executed>(header));
        case wire::kGranted: of.granted = true; return;
        case wire::kLockRefused:
            of.refused = failure(MPI_ERR_PROC_ABORTED,
                                 "a rank died as it took or gave back the lock of rank {}", from);
            return;
        case wire::kLeft:
            return window.do_without(
                from, failure(wire::read<wire::Left>(header).error_class,
                              "rank {} of the window has left it after a failure", from));
        case wire::kPost: ++of.posts; return;
        case wire::kPutEnded:
            return window.rendezvous.on_put_ended(from, wire::read<wire::PutEnded>(header));
        case wire::kAnswerFollows: return window.rendezvous.take_answer(from, header, payload);
        // To this rank as a target, before its turn.
        case wire::kLayout: {
            const Status heard = of.heard.hear(wire::read<wire::Layout>(header), payload);
            if (!heard.ok()) log::error("rma: from rank {}: {}", from, heard.text());
            return;
        }
        case wire::kLock:
            return window.locks.ask_for_lock(from, wire::read<wire::Lock>(header).kind);
        // Puts and gets have no order among the others.
        case wire::kRendezvousPut: return window.rendezvous.take_put(from, header, payload);
        case wire::kRendezvousGet: return window.rendezvous.serve_rendezvous_get(from, header);
        default: break;
    }
    if (!of.has_arrived() && serve_now(from, kind, header, payload)) return;
    if (of.arrived == nullptr) of.arrived = std::make_unique<std::deque<Target::Arrived>>();
    of.arrived->push_back({kind, {header.begin(), header.end()}, {payload.begin(), payload.end()}});
    if (of.arrived->size() == 1) window.tasks.spawn(serve_all(windows.executor(), from));
}

Result<Region> Inbound::region_of(int from, const wire::Span& span) {
    Side side;
    side.buffer.address = reinterpret_cast<void*>(span.address);
    side.buffer.count = span.count;
    side.location = mine().location;
    if (span.layout != 0) {
        side.buffer.layout = target(from).heard.find(span.layout);
        if (side.buffer.layout == nullptr)
            return failure(MPI_ERR_INTERN, "rank {} never described its datatype {}", from,
                           span.layout);
    }
    if (window.flavor == Flavor::dynamic) {
        layout::Span bytes{0, static_cast<std::ptrdiff_t>(span.first + span.bytes)};
        if (side.buffer.layout != nullptr) bytes = layout::span_of(*side.buffer.layout, span.count);
        const DynamicMemory::Attached* around = window.dynamic.attached_around(
            span.address + static_cast<std::uint64_t>(bytes.low), bytes.bytes());
        if (around == nullptr)
            return failure(MPI_ERR_RMA_RANGE,
                           "rank {} names {} bytes at {:#x}, which are not attached to the window",
                           from, bytes.bytes(), span.address);
        side.location = around->location;
    }
    return Region{side, span.first, span.bytes, 0};
}

// False: it takes more than loads and stores, or has to wait for a lock.
bool Inbound::serve_now(int from, wire::Kind kind, transport::ConstSpan header,
                        transport::ConstSpan payload) {
    Target& of = target(from);
    if (kind == wire::kFlush) return report(from), true;
    if (kind == wire::kUnlock) return window.locks.take_lock_from(from), true;
    if (kind == wire::kComplete) return ++of.completes, true;
    if (kind == wire::kGetInto) return window.rdma.serve_get_into(from, header, payload);
    if (kind == wire::kSettle) {
        const Status settled = windows.context.device.settle_network_writes(mine().location.gpu);
        served(from, settled, 0);
        return true;
    }
    if (kind == wire::kPuts) return serve_puts(from, payload);
    Request request = request_of(kind, header, payload);
    Result<Region> region = region_of(from, request.span);
    if (!region.ok()) {
        log::warn("rma: {}", region.status().text());
        if (request.id != 0) answer(from, request.id, request.span, region.status(), {});
        served(from, region.status(), request.span.bytes);
        return true;
    }
    if (!region->on_host()) return false;
    if (kind == wire::kPut) {
        const Status written = write_host(*region, payload.data());
        served(from, written, request.span.bytes);
        return true;
    }
    std::unique_ptr<std::byte[]> result;
    const bool contiguous = region->side.contiguous();
    if (kind == wire::kFetch || kind == wire::kCompareAndSwap || !contiguous) {
        Result<std::unique_ptr<std::byte[]>> memory =
            transfer::host_memory(request.span.bytes, "an answer");
        if (!memory.ok()) return false;
        result = std::move(*memory);
    }
    Status status;
    const std::byte* read = result.get();
    if (changes(kind)) {
        if (request.id != 0) request.change.result = result.get();
        if (!window.locks.try_accumulate(*mine().control)) return false;
        status = change_host(*region, request.change);
        mine().control->end_accumulate();
    } else if (contiguous) {
        read = region->side.at(request.span.first);
    } else {
        status = read_host(*region, result.get());
    }
    if (request.id != 0) answer(from, request.id, request.span, status, {read, request.span.bytes});
    served(from, status, request.span.bytes);
    return true;
}

Task<Status> Inbound::serve_all(Executor& executor, int from) {
    std::deque<Target::Arrived>& arrived = *target(from).arrived;
    while (!arrived.empty()) {
        const Target::Arrived& next = arrived.front();
        if (!serve_now(from, next.kind, next.header, next.payload)) {
            Status status = co_await serve(executor, from, next);
            if (!status.ok()) log::warn("rma: {}", status.text());
        }
        arrived.pop_front();
    }
    co_return success();
}

Task<Status> Inbound::serve(Executor& executor, int from, const Target::Arrived& message) {
    if (message.kind == wire::kPuts) {
        Status put = co_await serve_puts_slowly(executor, from, message.payload);
        co_return put;
    }
    Request request = request_of(message.kind, message.header, message.payload);
    Result<Region> region = region_of(from, request.span);
    GANTRY_ASSERT(region.ok());
    Status status;
    std::vector<std::byte> result;
    if (message.kind == wire::kPut) {
        status = co_await write(executor, windows.context, *region, message.payload.data());
    } else if (message.kind == wire::kGet) {
        result.resize(request.span.bytes);
        status = co_await read(executor, windows.context, *region, result.data());
    } else {
        if (request.id != 0) {
            result.resize(request.span.bytes);
            request.change.result = result.data();
        }
        status = co_await change_here(executor, *region, request.change);
    }
    if (request.id != 0) answer(from, request.id, request.span, status, result);
    served(from, status, request.span.bytes);
    co_return status;
}

// A piece (outbound.cpp): all of it, or nothing, is made by the GPU.
Task<Status> Inbound::change_here(Executor& executor, Region region, Change change) {
    ControlBlock& control = *mine().control;
    const device::Location on_host;
    const Side operand{Buffer{.address = const_cast<std::byte*>(change.operand)}, on_host};
    const Side result{Buffer{.address = change.result}, on_host};
    GpuChange on_gpu(windows.context, change, region, operand, result);
    if (on_gpu.possible()) {
        Status changed = co_await window.origin.change_by_gpu(executor, control, &on_gpu);
        if (changed.error_class() != MPI_ERR_UNSUPPORTED_OPERATION) co_return changed;
    }
    Status status = co_await window.locks.lock_accumulates(executor, control);
    GANTRY_CO_TRY(status);
    status = co_await rma::change(executor, windows.context, region, change);
    control.end_accumulate();
    co_return status;
}

void Inbound::answer(int from, std::uint64_t operation, const wire::Span& span,
                     const Status& status, transport::ConstSpan bytes, Bytes in_place) {
    if (!status.ok()) bytes = {};
    Status sent = window.send_behind_batch(
        from, wire::kAnswer,
        wire::Answer{{}, operation, span.first, status.error_class(), in_place}, bytes);
    if (!sent.ok()) log::info("rma: rank {} gets no answer: {}", from, sent.text());
}

void Inbound::served(int from, const Status& status, Bytes bytes) {
    Target& of = target(from);
    ++of.served;
    ++served_in_all_;
    of.served_bytes += bytes;
    if (!status.ok() && of.first_error == MPI_SUCCESS) of.first_error = status.error_class();
    // Before it has to wait for that.
    if (of.served - of.reported >= of.told_each ||
        of.served_bytes - of.reported_bytes >= of.told_each_bytes)
        report(from);
}

void Inbound::report(int from) {
    Target& of = target(from);
    of.reported = of.served;
    of.reported_bytes = of.served_bytes;
    Status sent = window.send_behind_batch(
        from, wire::kExecuted,
        wire::Executed{{},
                       of.served,
                       of.served_bytes,
                       std::exchange(of.first_error, static_cast<int>(MPI_SUCCESS))});
    if (!sent.ok()) log::info("rma: rank {} is not told: {}", from, sent.text());
}

}  // namespace gantry::rma
