// SPDX-License-Identifier: BSD-3-Clause
//
// Where operations begin. Between host memories that this process reaches they are loads and stores
// inside the call, and small ones by message are sent there and then. The rest is carried out by tasks:
// what changes items, and what goes by message, in its order; other copies on their own.
#include "rma/gpu_change.hpp"
#include "rma/windows.hpp"

#include "transfer/local_move.hpp"
#include "transfer/mover.hpp"

#include <algorithm>
#include <array>
#include <new>

namespace gantry::rma {
namespace {

constexpr Bytes kStridedPiece = 16 * kKiB;

bool on_host(const Side& side) {
    return !side.on_device();
}

// Both in host memory.
void copy_host(const Side& from, const Side& to, Bytes bytes) {
    if (from.contiguous()) return transfer::copy_in(to, 0, bytes, from.at(0));
    if (to.contiguous()) return transfer::copy_out(from, 0, bytes, to.at(0));
    std::array<std::byte, kStridedPiece> packed;
    for (Bytes first = 0; first < bytes; first += packed.size()) {
        const Bytes some = std::min<Bytes>(packed.size(), bytes - first);
        transfer::copy_out(from, first, some, packed.data());
        transfer::copy_in(to, first, some, packed.data());
    }
}

// Where packed bytes of a side are, or a copy of them in `memory`.
Result<const std::byte*> packed_at(const Side& side, Bytes first, Bytes bytes,
                                   std::unique_ptr<std::byte[]>& memory) {
    if (side.contiguous()) return static_cast<const std::byte*>(side.at(first));
    if (memory == nullptr) {
        Result<std::unique_ptr<std::byte[]>> made =
            transfer::host_memory(bytes, "a strided operand");
        GANTRY_TRY(made.status());
        memory = std::move(*made);
    }
    transfer::copy_out(side, first, bytes, memory.get());
    return static_cast<const std::byte*>(memory.get());
}

// What has a task of its own: it has no order among the others.
bool is_large(plan::WindowWay way) {
    return way == plan::WindowWay::rdma || way == plan::WindowWay::rendezvous;
}

bool is_constant(layout::Operation operation) {
    return operation == layout::Operation::no_op;
}

}  // namespace

Result<std::uint64_t> Origin::address_of(const Access& access) const {
    const Target& of = target(access.target);
    const layout::Span span = layout::span_of(*access.layout, access.count);
    if (window.flavor == Flavor::dynamic) return static_cast<std::uint64_t>(access.displacement);
    std::int64_t first = 0, low = 0, high = 0;
    const bool reaches_far = __builtin_mul_overflow(access.displacement, of.unit, &first) ||
                             __builtin_add_overflow(first, span.low, &low) ||
                             __builtin_add_overflow(first, span.high, &high);
    if (reaches_far || (span.bytes() > 0 && (low < 0 || static_cast<Bytes>(high) > of.bytes)))
        return failure(
            MPI_ERR_RMA_RANGE,
            "an operation on bytes {} to {} of the window at rank {}, which has {} bytes "
            "there (displacement {} in units of {})",
            low, high, access.target, of.bytes, access.displacement, of.unit);
    return of.base + static_cast<std::uint64_t>(first);
}

Side Origin::there(const Access& access, std::uint64_t address) {
    Target& of = target(access.target);
    Side side;
    const bool by_address = window.flavor == Flavor::dynamic || of.process != 0;
    side.buffer.address =
        by_address ? reinterpret_cast<void*>(address) : of.memory + (address - of.base);
    side.buffer.count = access.count;
    side.buffer.layout = access.layout;
    side.location = of.location;
    if (window.flavor == Flavor::dynamic && !of.direct)
        window.dynamic.locate_attached(
            of, address + static_cast<std::uint64_t>(access.layout->first), side);
    else if (window.flavor == Flavor::dynamic)
        if (const auto* attached = window.dynamic.attached_at(address, 1))
            side.location = attached->location;
    return side;
}

int Origin::process_of(const Access& access, const Side& there) {
    return there.on_device() ? 0 : target(access.target).process;
}

Result<bool> Origin::begin(const Access& access, Completion* done) {
    Target& of = target(access.target);
    GANTRY_TRY(window.synchronisation.check_access(of));
    if (!of.gone.ok()) return of.gone;
    Result<std::uint64_t> address = address_of(access);
    GANTRY_TRY(address.status());
    if (access.bytes == 0) return true;
    if (window.flavor == Flavor::dynamic && of.direct)
        GANTRY_TRY(window.dynamic.check_attached(access, *address));
    const plan::WindowWay way = window.ways.way_of(access, *address);
    const bool direct = way == plan::WindowWay::direct;
    if (is_large(way)) {
        GANTRY_TRY(queue(access, *address, way, done));
        return false;
    }
    const bool waits_behind = of.carrying && (changes_items(access.verb) || !direct);
    if (!waits_behind) {
        Result<bool> ended =
            direct ? try_direct(access, *address) : window.outbound.try_message(access, *address);
        if (!ended.ok() || *ended) return ended;
    }
    GANTRY_TRY(queue(access, *address, way, done));
    return false;
}

Task<Status> Origin::begin_and_wait(Executor& executor, Access access) {
    Completion done(executor);
    Result<bool> ended = begin(access, &done);
    if (!ended.ok()) co_return std::move(ended).status();
    if (*ended) co_return success();
    Status status = co_await done;
    co_return status;
}

// A put or get between host memory here and memory that the kernel copies.
// From byte `first` on.
Result<bool> Origin::copy_by_kernel(const Access& access, const Side& target_side, Bytes first) {
    const int process = target(access.target).process;
    const Side& here = access.origin;
    const Bytes most = here.contiguous() ? access.bytes : kStridedPiece;
    std::array<std::byte, kStridedPiece> packed;
    for (; first < access.bytes; first += most) {
        const Region there{target_side, first, std::min(most, access.bytes - first), process};
        std::byte* const bytes = here.contiguous() ? here.at(first) : packed.data();
        if (access.verb == Verb::put) {
            if (!here.contiguous()) transfer::copy_out(here, first, there.bytes, bytes);
            GANTRY_TRY(write_host(there, bytes));
        } else {
            GANTRY_TRY(read_host(there, bytes));
            if (!here.contiguous()) transfer::copy_in(here, first, there.bytes, bytes);
        }
    }
    return true;
}

// True: it is done. False: it takes more than the processor's loads and stores.
Result<bool> Origin::try_direct(const Access& access, std::uint64_t address) {
    const Side target_side = there(access, address);
    if (!on_host(target_side) || !on_host(access.origin) || !on_host(access.result)) return false;
    const int process = process_of(access, target_side);
    if (process != 0) {
        Result<Bytes> moved = run_errands(access, target_side);
        GANTRY_TRY(moved.status());
        if (*moved == access.bytes) return true;
        if (!changes_items(access.verb)) return copy_by_kernel(access, target_side, *moved);
    }
    if (access.verb == Verb::put) {
        copy_host(access.origin, target_side, access.bytes);
        return true;
    }
    if (access.verb == Verb::get) {
        copy_host(target_side, access.origin, access.bytes);
        return true;
    }
    if (access.bytes > kMostUnderLock || !access.result.contiguous()) return false;
    std::unique_ptr<std::byte[]> packed;
    Change change{access.verb, access.operation, access.items, nullptr, nullptr, nullptr};
    if (!is_constant(access.operation)) {
        Result<const std::byte*> operand = packed_at(access.origin, 0, access.bytes, packed);
        GANTRY_TRY(operand.status());
        change.operand = *operand;
    }
    if (access.verb == Verb::compare_and_swap) change.compare = access.compare.at(0);
    if (access.verb != Verb::accumulate) change.result = access.result.at(0);
    ControlBlock& control = *target(access.target).control;
    if (!window.locks.try_accumulate(control)) return false;
    Status changed = change_host({target_side, 0, access.bytes, process}, change);
    control.end_accumulate();
    GANTRY_TRY(changed);
    return true;
}

Status Origin::queue(const Access& access, std::uint64_t address, plan::WindowWay way,
                     Completion* done) {
    auto* operation = new (std::nothrow) Operation(window, access);
    if (operation == nullptr)
        return failure(MPI_ERR_NO_MEM, "out of memory for a one-sided operation");
    operation->address = address;
    operation->done = done;
    operation->direct = way == plan::WindowWay::direct;
    Target& of = target(access.target);
    ++of.busy;
    Executor& executor = windows.executor();
    if (operation->direct && !changes_items(access.verb)) {
        window.tasks.spawn(copy_directly(executor, operation));
        return success();
    }
    if (is_large(way)) {
        window.tasks.spawn(way == plan::WindowWay::rdma
                               ? window.rdma.carry(executor, operation)
                               : window.rendezvous.carry(executor, operation));
        return success();
    }
    of.queue.push_back(*operation);
    if (std::exchange(of.carrying, true)) return success();
    window.tasks.spawn(carry_out_all(executor, access.target));
    return success();
}

Task<Status> Origin::carry_out_all(Executor& executor, int of_rank) {
    Target& of = target(of_rank);
    while (Operation* operation = of.queue.pop_front()) {
        if (operation->direct) {
            Status status = co_await change_directly(executor, *operation);
            ended(*operation, std::move(status));
        } else {
            Status status = co_await window.outbound.carry_out_by_message(executor, *operation);
            operation->being_sent = false;
            if (!status.ok()) operation->status = std::move(status);
            window.outbound.end_if_over(*operation);
        }
    }
    of.carrying = false;
    co_return success();
}

namespace {

// By way of host memory here.
Task<Status> copy_staged(Executor& executor, transfer::Context& context, Region from, Region to) {
    constexpr Bytes kMost = kMiB;
    const Bytes all = from.bytes;
    Result<std::unique_ptr<std::byte[]>> memory =
        transfer::host_memory(std::min(kMost, all), "an operation on its way");
    if (!memory.ok()) co_return std::move(memory).status();
    for (Bytes first = 0; first < all; first += kMost) {
        from.first = to.first = first;
        from.bytes = to.bytes = std::min(kMost, all - first);
        Status status = co_await read(executor, context, from, memory->get());
        GANTRY_CO_TRY(status);
        status = co_await write(executor, context, to, memory->get());
        GANTRY_CO_TRY(status);
    }
    co_return success();
}

}  // namespace

plan::WindowCopy Origin::copier_of(const Access& access, const Side& from, const Side& to) {
    const Target& of = target(access.target);
    plan::WindowCopyQuestion question;
    question.bytes = access.bytes;
    question.contiguous = from.contiguous() && to.contiguous();
    question.on_devices = from.on_device() && to.on_device();
    question.others = between_gpus_ > 0;
    if (of.mapped.is_open()) {
        const int gpu = access.origin.location.gpu;
        question.between_gpus =
            of.location.gpu == gpu && windows.context.device.gpu_of(of.mapped.handle().gpu) != gpu;
    }
    return plan::window_copy(question);
}

Task<Status> Origin::copy_directly(Executor& executor, Operation* operation) {
    const Access& access = operation->access;
    const Side target_side = there(access, operation->address);
    const bool puts = access.verb == Verb::put;
    const int process = process_of(access, target_side);
    if (process != 0) {
        const Region there{target_side, 0, access.bytes, process},
            here{access.origin, 0, access.bytes, 0};
        const Region &source = puts ? here : there, &sink = puts ? there : here;
        Status copied = co_await copy_staged(executor, windows.context, source, sink);
        ended(*operation, std::move(copied));
        co_return success();
    }
    const Side from = puts ? access.origin : target_side, to = puts ? target_side : access.origin;
    if (const plan::WindowCopy how = copier_of(access, from, to); how != plan::WindowCopy::alone) {
        device::Copy copy;
        copy.destination = to.at(0);
        copy.source = from.at(0);
        copy.bytes = access.bytes;
        copy.gpu = access.origin.location.gpu;
        copy.engine = device::Engine::fused;
        copy.notice = device::Notice::flag;
        if (how == plan::WindowCopy::with_others) copy.batch = device::BatchHint::expected;
        ++between_gpus_;
        Status copied = co_await transfer::device_copy(executor, windows.context, copy);
        --between_gpus_;
        ended(*operation, std::move(copied));
        co_return success();
    }
    Status status = co_await transfer::move_locally(executor, windows.context, from, access.bytes,
                                                    to, access.bytes);
    ended(*operation, std::move(status));
    co_return success();
}

// MPI_ERR_UNSUPPORTED_OPERATION: what has not been changed can be by the host.
Task<Status> Origin::change_by_gpu(Executor& executor, ControlBlock& control, GpuChange* change) {
    while (!change->ended()) {
        Status status = co_await change->bring(executor);
        GANTRY_CO_TRY(status);
        status = co_await window.locks.lock_accumulates(executor, control);
        GANTRY_CO_TRY(status);
        status = co_await change->make(executor);
        control.end_accumulate();
        GANTRY_CO_TRY(status);
    }
    co_return success();
}

Task<Status> Origin::change_directly(Executor& executor, Operation& operation) {
    const Access& access = operation.access;
    const Side target_side = there(access, operation.address);
    ControlBlock& control = *target(access.target).control;
    const int process = process_of(access, target_side);
    const Change of_gpu{access.verb, access.operation, access.items, nullptr, nullptr, nullptr};
    const Region whole{target_side, 0, access.bytes, process};
    GpuChange on_gpu(windows.context, of_gpu, whole, access.origin, access.result);
    if (on_gpu.possible()) {
        Status changed = co_await change_by_gpu(executor, control, &on_gpu);
        if (changed.error_class() != MPI_ERR_UNSUPPORTED_OPERATION) co_return changed;
    }
    const Bytes most = access.items.size * std::max<Bytes>(kMostUnderLock / access.items.size, 1);
    const Bytes piece = std::min(most, access.bytes);
    const bool compares = access.verb == Verb::compare_and_swap;
    Result<std::unique_ptr<std::byte[]>> memory =
        transfer::host_memory(3 * piece, "an accumulate on its way");
    if (!memory.ok()) co_return std::move(memory).status();
    std::byte *const operand = memory->get(), *const compare = operand + piece,
                     *const result = compare + piece;
    for (Bytes first = on_gpu.done(); first < access.bytes; first += piece) {
        const Bytes some = std::min(piece, access.bytes - first);
        Change change{access.verb, access.operation, access.items, operand, compare, nullptr};
        if (access.verb != Verb::accumulate) change.result = result;
        Status status;
        const Region from{access.origin, first, some, 0}, with{access.compare, first, some, 0},
            at{target_side, first, some, process}, into{access.result, first, some, 0};
        if (!is_constant(access.operation)) {
            status = co_await read(executor, windows.context, from, operand);
            GANTRY_CO_TRY(status);
        }
        if (compares) {
            status = co_await read(executor, windows.context, with, compare);
            GANTRY_CO_TRY(status);
        }
        status = co_await window.locks.lock_accumulates(executor, control);
        GANTRY_CO_TRY(status);
        status = co_await rma::change(executor, windows.context, at, change);
        control.end_accumulate();
        GANTRY_CO_TRY(status);
        if (access.verb == Verb::accumulate) continue;
        status = co_await write(executor, windows.context, into, result);
        GANTRY_CO_TRY(status);
    }
    co_return success();
}

void Origin::ended(Operation& operation, Status status) {
    Target& of = target(operation.access.target);
    --of.busy;
    if (operation.id != 0) windows.answered(operation.id);
    if (operation.into.id != 0)
        windows.context.endpoints.to(of.peer).transport->release_memory(operation.into);
    if (operation.done != nullptr)
        operation.done->complete(std::move(status));
    else if (!status.ok() && of.failure.ok())
        of.failure = std::move(status);
    delete &operation;
}

}  // namespace gantry::rma
