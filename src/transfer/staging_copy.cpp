// SPDX-License-Identifier: BSD-3-Clause
#include "transfer/staging_copy.hpp"

#include <utility>

namespace gantry::transfer {
namespace {

HostCopy host_copy(const Context& context, const Side& side, transport::Pool pool, Bytes message,
                   Bytes streamed_from) {
    if (pool != transport::Pool::device_slots) return HostCopy::cached;
    if (context.host_copies.shared() && message >= plan::kStreamedFrom && side.contiguous())
        return HostCopy::shared;
    return message >= streamed_from ? HostCopy::streaming : HostCopy::cached;
}

Stores stores_of(HostCopy how) {
    return how == HostCopy::cached ? Stores::cached : Stores::streaming;
}

Task<Status> move_strided(Executor& executor, Context& context, Staging staging, Piece piece,
                          std::byte* slot, Way way, Completion& done) {
    const plan::Movers movers = movers_of(context, staging.engine);
    Status status;
    if (way == Way::from_device)
        status = co_await pack_from_device(executor, context, piece, slot, movers, staging.notice);
    else
        status = co_await unpack_to_device(executor, context, piece, slot, movers, staging.notice);
    done.complete(std::move(status));
    co_return success();
}

void start_strided(Context& context, const Staging& staging, Piece piece, std::byte* slot, Way way,
                   Completion& done) {
    Task<Status> moving = move_strided(context.executor, context, staging, piece, slot, way, done);
    if (!moving.done())
        context.operations.spawn(std::move(moving));
    else if (!done.done())  // there was no memory for it
        done.complete(moving.take());
}

}  // namespace

HostCopy host_copy_to_slots(const Context& context, const Side& side, transport::Pool pool,
                            Bytes message) {
    return host_copy(context, side, pool, message, plan::kStreamedIntoSlotsFrom);
}

HostCopy host_copy_from_slots(const Context& context, const Side& side, transport::Pool pool,
                              Bytes message) {
    return host_copy(context, side, pool, message, plan::kStreamedFrom);
}

device::Copy device_to_slot(const Staging& staging, Bytes offset, Bytes bytes, std::byte* slot) {
    return {.destination = slot,
            .source = staging.side.at(offset),
            .bytes = bytes,
            .gpu = staging.side.location.gpu,
            .engine = device::Engine::d2h,
            .notice = staging.notice};
}

device::Copy slot_to_device(const Staging& staging, Bytes offset, Bytes bytes, std::byte* slot) {
    // In rows where the plan says so. Without the BAR mapping that was planned with, what is right on
    // a shared GPU is right on any.
    const bool in_rows = staging.engine == plan::CopyEngine::copy_engine_2d ||
                         staging.engine == plan::CopyEngine::bar;
    return {.destination = staging.side.at(offset),
            .source = slot,
            .bytes = bytes,
            .gpu = staging.side.location.gpu,
            .engine = in_rows ? device::Engine::h2d_2d : device::Engine::h2d,
            .notice = staging.notice};
}

void copy_to_slot(Context& context, const Staging& staging, Bytes offset, Bytes bytes,
                  std::byte* slot, HostCopy how, Completion& done) {
    const Side& side = staging.side;
    if (side.on_device() && !side.contiguous())
        return start_strided(context, staging, side.piece(offset, bytes), slot, Way::from_device,
                             done);
    if (side.on_device())
        return context.device.copy(device_to_slot(staging, offset, bytes, slot), done);
    if (how == HostCopy::shared && context.host_copies.start({slot, side.at(offset), bytes}, done))
        return;
    copy_out(side, offset, bytes, slot, stores_of(how));
    done.complete(success());
}

void copy_from_slot(Context& context, const Staging& staging, Bytes offset, Bytes bytes,
                    std::byte* slot, HostCopy how, Completion& done) {
    const Side& side = staging.side;
    if (side.on_device() && !side.contiguous())
        return start_strided(context, staging, side.piece(offset, bytes), slot, Way::to_device,
                             done);
    if (side.on_device())
        return context.device.copy(slot_to_device(staging, offset, bytes, slot), done);
    if (how == HostCopy::shared && context.host_copies.start({side.at(offset), slot, bytes}, done))
        return;
    copy_in(side, offset, bytes, slot, stores_of(how));
    done.complete(success());
}

}  // namespace gantry::transfer
