// SPDX-License-Identifier: BSD-3-Clause
//
// Operations by message, at their origin. An operation goes in pieces, each of which the target
// executes by itself; an origin has a bounded number of messages and bytes at a target that this one
// has not yet said to have executed.
#include "rma/windows.hpp"

#include "base/log.hpp"
#include "transfer/mover.hpp"

#include <algorithm>
#include <new>

namespace gantry::rma {

// A target that keeps up makes no origin wait.
bool Outbound::has_room(const Target& of) const {
    const config::Config& config = windows.context.config;
    return of.sent - of.executed < static_cast<std::uint64_t>(config.window_pending) &&
           of.sent_bytes - of.executed_bytes < config.window_pending_bytes;
}

Task<Status> Outbound::until_room(Executor& executor, Target& of) {
    Status waited =
        co_await windows.until(executor, [this, &of] { return has_room(of) || !of.gone.ok(); });
    GANTRY_CO_TRY(waited);
    co_return of.gone;
}

// Copied whole into one message of the transport.
Bytes Outbound::largest_piece(const Target& of) const {
    return std::min(windows.context.config.window_piece,
                    windows.context.endpoints.to(of.peer).facts.eager_max);
}

Bytes Outbound::piece_bytes(const Access& access) {
    const Bytes most = largest_piece(target(access.target));
    if (!changes_items(access.verb)) return most;
    return most / access.items.size * access.items.size;
}

// The target's buffer on the wire. A layout that it does not know yet is told first.
Result<wire::Span> Outbound::span_for(const Access& access, std::uint64_t address) {
    wire::Span span{address, access.count, 0, access.bytes, 0};
    const layout::Layout& layout = *access.layout;
    if (layout.contiguous() || (access.count == 1 && layout.one_run)) {
        span.address += static_cast<std::uint64_t>(layout.first);
        return span;
    }
    Target& of = target(access.target);
    const std::string description = describe(layout);
    const ToldLayouts::Number number = of.told.number_of(description, layout.extent);
    span.layout = number.layout;
    if (!number.is_new) return span;
    const auto* bytes = reinterpret_cast<const std::byte*>(description.data());
    const Bytes most = largest_piece(of);
    wire::Layout header{{}, number.layout, 0, description.size(), layout.extent};
    for (; header.offset < header.size; header.offset += most) {
        const Bytes some = std::min<Bytes>(most, header.size - header.offset);
        GANTRY_TRY(window.send_behind_batch(access.target, wire::kLayout, header,
                                            {bytes + header.offset, some}));
    }
    return span;
}

Status Outbound::send_piece(const Access& access, std::uint64_t operation, const wire::Span& span,
                            transport::ConstSpan payload) {
    Status sent;
    const auto how = static_cast<std::uint8_t>(access.operation);
    const auto element = static_cast<std::uint8_t>(access.items.element);
    switch (access.verb) {
        case Verb::put:
            sent =
                window.send_behind_batch(access.target, wire::kPut, wire::Put{{}, span}, payload);
            break;
        case Verb::get:
            sent =
                window.send_behind_batch(access.target, wire::kGet, wire::Get{{}, span, operation});
            break;
        case Verb::accumulate:
        case Verb::fetch:
            sent = window.send_behind_batch(
                access.target, access.verb == Verb::fetch ? wire::kFetch : wire::kAccumulate,
                wire::Accumulate{{}, span, operation, how, element}, payload);
            break;
        case Verb::compare_and_swap:
            sent = window.send_behind_batch(access.target, wire::kCompareAndSwap,
                                            wire::CompareAndSwap{{}, span, operation}, payload);
            break;
    }
    GANTRY_TRY(sent);
    Target& of = target(access.target);
    ++of.sent;
    of.sent_bytes += span.bytes;
    return success();
}

// True: it has left. Small ones from host memory leave at once.
Result<bool> Outbound::try_message(const Access& access, std::uint64_t address) {
    Target& of = target(access.target);
    if (!of.gone.ok()) return of.gone;
    const bool simple = !reads(access.verb) && !access.origin.on_device() &&
                        access.origin.contiguous() && access.bytes <= piece_bytes(access);
    if (!simple || !has_room(of)) return false;
    Result<wire::Span> span = span_for(access, address);
    GANTRY_TRY(span.status());
    if (joins_batch(access, *span)) {
        GANTRY_TRY(add_to_batch(access.target, *span, access.origin.at(0)));
        return true;
    }
    transport::ConstSpan payload;
    if (access.operation != layout::Operation::no_op) payload = {access.origin.at(0), access.bytes};
    GANTRY_TRY(send_piece(access, 0, *span, payload));
    return true;
}

Task<Status> Outbound::carry_out_by_message(Executor& executor, Operation& operation) {
    const Access& access = operation.access;
    Target& of = target(access.target);
    if (!of.gone.ok()) co_return of.gone;
    operation.being_sent = true;
    if (reads(access.verb)) {
        operation.missing = access.bytes;
        windows.await_answer(operation);
    }
    Result<wire::Span> whole = span_for(access, operation.address);
    if (!whole.ok()) co_return std::move(whole).status();
    const bool carries_data =
        access.verb != Verb::get && access.operation != layout::Operation::no_op;
    const bool compares = access.verb == Verb::compare_and_swap;
    const Bytes most = piece_bytes(access);
    std::unique_ptr<std::byte[]> memory;
    if (carries_data) {
        Result<std::unique_ptr<std::byte[]>> made = transfer::host_memory(
            std::min(most, access.bytes) * (compares ? 2 : 1), "an operation on its way");
        if (!made.ok()) co_return std::move(made).status();
        memory = std::move(*made);
    }
    for (Bytes first = 0; first < access.bytes; first += most) {
        if (!has_room(of)) {
            Status room = co_await until_room(executor, of);
            GANTRY_CO_TRY(room);
        }
        wire::Span span = *whole;
        span.first = first;
        span.bytes = std::min(most, access.bytes - first);
        Status status;
        transport::ConstSpan payload;
        if (carries_data) {
            const Region from{access.origin, first, span.bytes, 0};
            status = co_await read(executor, windows.context, from, memory.get());
            GANTRY_CO_TRY(status);
            payload = {memory.get(), span.bytes};
        }
        if (compares) {
            const Region with{access.compare, first, span.bytes, 0};
            status = co_await read(executor, windows.context, with, memory.get() + span.bytes);
            GANTRY_CO_TRY(status);
            payload = {memory.get(), 2 * span.bytes};
        }
        if (!of.gone.ok()) co_return of.gone;
        status = send_piece(access, operation.id, span, payload);
        GANTRY_CO_TRY(status);
    }
    co_return success();
}

// What was sent has left; what reads waits for its answers, and for their last byte to lie where it
// belongs.
void Outbound::end_if_over(Operation& operation) {
    if (operation.being_sent || operation.stores > 0) return;
    if (operation.missing > 0 && operation.status.ok()) return;
    window.origin.ended(operation, std::move(operation.status));
}

void Outbound::on_answer(const wire::Answer& answer, transport::ConstSpan payload) {
    Operation* const operation = windows.waiting_for(answer.id);
    if (operation == nullptr) return;  // it failed meanwhile
    if (answer.error_class != MPI_SUCCESS) {
        if (operation->status.ok())
            operation->status =
                failure(answer.error_class,
                        "rank {} could not execute a one-sided operation (its own log says why)",
                        operation->access.target);
        return end_if_over(*operation);
    }
    operation->missing -= std::min<Bytes>(operation->missing, payload.size() + answer.in_place);
    if (answer.in_place > 0) {
        const Side& into = operation->access.sink();
        if (into.on_device() && operation->status.ok())
            operation->status = windows.context.device.settle_network_writes(into.location.gpu);
        return end_if_over(*operation);
    }
    const Side& sink = operation->access.sink();
    if (!sink.on_device()) {
        transfer::copy_in(sink, answer.first, payload.size(), payload.data());
        return end_if_over(*operation);
    }
    ++operation->stores;
    window.tasks.spawn(store_answer(windows.executor(), operation, answer.first,
                                    {payload.begin(), payload.end()}));
}

Task<Status> Outbound::store_answer(Executor& executor, Operation* operation, Bytes first,
                                    std::vector<std::byte> bytes) {
    const Region into{operation->access.sink(), first, bytes.size(), 0};
    Status stored = co_await write(executor, windows.context, into, bytes.data());
    --operation->stores;
    if (!stored.ok() && operation->status.ok()) operation->status = std::move(stored);
    end_if_over(*operation);
    co_return success();
}

void Outbound::on_executed(int from, const wire::Executed& executed) {
    Target& of = target(from);
    of.executed = std::max(of.executed, executed.messages);
    of.executed_bytes = std::max(of.executed_bytes, executed.bytes);
    if (executed.error_class != MPI_SUCCESS && of.failure.ok())
        of.failure =
            failure(executed.error_class,
                    "rank {} could not execute a one-sided operation (its own log says why)", from);
}

}  // namespace gantry::rma
