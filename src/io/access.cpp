// SPDX-License-Identifier: BSD-3-Clause
//
// One rank's reads and writes. The runs of the memory and those of the view are paired in their order
// and go to the backend in pieces, several at once:
//
//   direct   host memory                        what adjoins on both sides is one segment
//   packed   host memory in short runs          through scratch memory of a piece
//   storage  device memory                      as direct, moved by GPUDirect Storage where it is there
//   slots    device memory                      through page-locked slots: a piece is copied out of the
//                                               GPU, or packed by its kernels, while others are written
//
// No copy is ever larger than the pieces in flight.
#include "base/scope.hpp"
#include "base/yield.hpp"
#include "io/depth.hpp"
#include "io/errors.hpp"
#include "io/file.hpp"
#include "io/pairs.hpp"
#include "transfer/pipeline/stage.hpp"
#include "transfer/staging_copy.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>

namespace gantry::io {
namespace {

// Of one transfer: what its list of segments takes stays small.
constexpr std::size_t kMostSegments = 4096;

// Everything that pieces of one access have in common; it outlives them.
struct Operation {
    File& file;
    const Access& access;
    transfer::Side side;
    plan::IoPlan plan;
    Depth depth{plan.depth};
    Bytes moved = 0;
    bool met_end = false;
    plan::IoCarrierPlan carrier = {};  // of the last piece

    bool writes() const { return access.direction == Direction::write; }
    Transfer transfer() const {
        Transfer made{.file = file.handle(),
                      .direction = access.direction,
                      .sieve = plan.sieve,
                      .sieved = plan.sieved,
                      .ring_allowed = file.hints.io_uring};
        if (plan.way == plan::IoWay::storage) {
            made.storage = file.files.direct_storage();
            made.storage_file = file.storage_handle();
        }
        return made;
    }
    void note(const Transfer& ended) {
        moved += ended.moved;
        met_end = met_end || ended.met_end;
        carrier = ended.carrier;
    }
};

// By the caller where that is a copy of memory, or by a thread.
Task<Status> carry_out(Executor& executor, Operation& operation, Transfer& transfer) {
    Files& files = operation.file.files;
    if (operation.plan.at_once) co_return files.run_now(transfer, operation.file.path);
    const Nanoseconds begin = files.context.begins();
    if (transfer.storage != nullptr || transfer.bytes() > plan::kMostReadNow ||
        !files.backend().read_now(transfer)) {
        Status ended = co_await files.run(executor, transfer, operation.file.path);
        co_return ended;
    }
    files.was_with_file(transfer, begin);
    co_return outcome_of(transfer, operation.file.path);
}

// Up to so many bytes of them, or segments.
Bytes take(Pairs& pairs, std::vector<Segment>& segments, Bytes most) {
    Bytes bytes = 0;
    Segment pair;
    while (bytes < most && segments.size() < kMostSegments && pairs.next(pair, most - bytes)) {
        segments.push_back(pair);
        bytes += pair.bytes;
    }
    return bytes;
}

// The segments of data bytes [first, first + bytes) of the access that lie packed in memory.
void add_packed(const Operation& operation, Bytes first, Bytes bytes, std::byte* packed,
                std::vector<Segment>& segments) {
    const View& view = *operation.access.view;
    layout::RunWalk runs = view.runs(operation.access.first + first, bytes);
    for (layout::Block run; runs.next(run); packed += run.bytes)
        segments.push_back({view.displacement + run.offset, packed, run.bytes});
}

Task<Status> direct_piece(Executor& executor, Operation& operation, std::vector<Segment> segments) {
    const Within piece(operation.depth);
    Transfer transfer = operation.transfer();
    transfer.segments = std::move(segments);
    Status ended = co_await carry_out(executor, operation, transfer);
    operation.note(transfer);
    co_return ended;
}

Task<Status> packed_piece(Executor& executor, Operation& operation, Bytes first, Bytes bytes) {
    const Within piece(operation.depth);
    const std::unique_ptr<std::byte[]> packed(new (std::nothrow) std::byte[bytes]);
    if (packed == nullptr)
        co_return failure(MPI_ERR_NO_MEM, "out of memory for {} bytes of packed data", bytes);
    Transfer transfer = operation.transfer();
    add_packed(operation, first, bytes, packed.get(), transfer.segments);
    if (operation.writes()) transfer::copy_out(operation.side, first, bytes, packed.get());
    Status ended = co_await carry_out(executor, operation, transfer);
    operation.note(transfer);
    if (!operation.writes() && transfer.moved > 0)
        transfer::copy_in(operation.side, first, transfer.moved, packed.get());
    co_return ended;
}

Task<Status> slot_piece(Executor& executor, Operation& operation, transfer::HeldSlot slot,
                        Bytes first, Bytes bytes) {
    const Within piece(operation.depth);
    transfer::Context& context = operation.file.files.context;
    const transfer::Staging staging{operation.side, operation.plan.engine};
    Transfer transfer = operation.transfer();
    add_packed(operation, first, bytes, slot.memory(), transfer.segments);
    Status ended;
    if (operation.writes()) {
        Completion copied(executor);
        transfer::copy_to_slot(context, staging, first, bytes, slot.memory(),
                               transfer::HostCopy::cached, copied);
        ended = co_await copied;
    }
    if (ended.ok()) ended = co_await carry_out(executor, operation, transfer);
    operation.note(transfer);
    if (!operation.writes() && transfer.moved > 0) {
        Completion copied(executor);
        transfer::copy_from_slot(context, staging, first, transfer.moved, slot.memory(),
                                 transfer::HostCopy::cached, copied);
        Status stored = co_await copied;
        if (ended.ok()) ended = stored;
    }
    slot.give_back();
    co_return ended;
}

Task<Status> run_direct(Executor& executor, Operation& operation) {
    const Access& access = operation.access;
    const View& view = *access.view;
    Pairs pairs(static_cast<std::byte*>(access.buffer.address),
                layout::RunWalk(*access.buffer.layout, 0, access.bytes()), view.displacement,
                view.runs(access.first, access.bytes()));
    Scope pieces(executor);
    for (Bytes first = 0; first < access.bytes() && !pieces.cancelled() && !operation.met_end;) {
        if (operation.plan.at_once && first > 0) co_await Yield(executor);
        std::vector<Segment> segments;
        first += take(pairs, segments, operation.plan.piece);
        pieces.spawn(direct_piece(executor, operation, std::move(segments)));
        Status room = co_await operation.depth.room(executor);
    }
    Status joined = co_await pieces.join(executor);
    co_return joined;
}

Task<Status> run_packed(Executor& executor, Operation& operation) {
    const Bytes all = operation.access.bytes();
    Scope pieces(executor);
    for (Bytes first = 0; first < all && !pieces.cancelled() && !operation.met_end;) {
        if (operation.plan.at_once && first > 0) co_await Yield(executor);
        const Bytes bytes = std::min(operation.plan.piece, all - first);
        pieces.spawn(packed_piece(executor, operation, first, bytes));
        first += bytes;
        Status room = co_await operation.depth.room(executor);
    }
    Status joined = co_await pieces.join(executor);
    co_return joined;
}

Task<Status> run_slots(Executor& executor, Operation& operation) {
    const Bytes all = operation.access.bytes();
    Scope pieces(executor);
    Status status;
    for (Bytes first = 0; first < all && !pieces.cancelled() && !operation.met_end;) {
        const Bytes bytes = std::min(operation.plan.piece, all - first);
        Result<transfer::HeldSlot> slot = co_await transfer::HeldSlot::take(
            executor, operation.file.files.context.pools, bytes, transfer::SlotUse::source);
        if (!slot.ok()) {
            status = std::move(slot).status();
            break;
        }
        pieces.spawn(slot_piece(executor, operation, std::move(*slot), first, bytes));
        first += bytes;
        Status room = co_await operation.depth.room(executor);
    }
    Status joined = co_await pieces.join(executor);
    co_return status.ok() ? joined : status;
}

}  // namespace

Task<Status> File::transfer_range(Executor& executor, Access access, Bytes* moved) {
    Status reached = check_reach(*access.view, access.first, access.bytes());
    GANTRY_CO_TRY(reached);
    transfer::Side side{access.buffer, {}};
    Result<device::Location> location = files.context.locate(access.buffer);
    if (!location.ok()) co_return std::move(location).status();
    side.location = *location;
    const layout::Layout& type = access.view->filetype;
    plan::IoQuestion question;
    question.writes = access.direction == Direction::write;
    question.on_device = side.on_device();
    question.strided_memory = !side.contiguous();
    question.in_memory = in_memory_;
    question.bytes = access.bytes();
    question.memory_run = mean_run(*access.buffer.layout, access.bytes());
    question.file_run = mean_run(type, access.bytes());
    if (!type.contiguous())
        question.file_gap = (static_cast<Bytes>(type.extent) - type.size) / type.form->runs;
    question.sieve = hints.sieve_read;
    if (question.on_device) {
        Result<transfer::SlotPool*> pool = files.context.pools.own(transport::Pool::device_slots);
        if (!pool.ok()) co_return std::move(pool).status();
        question.largest_slot = (*pool)->largest();
        if (side.contiguous() && access.bytes() >= plan::kStorageRun &&
            hints.direct_storage != plan::IoSwitch::disable) {
            Status found = co_await find_storage(executor);
            question.direct_storage = found.ok();
        }
    }
    const plan::IoPlan plan = plan::io_plan(question);
    const Nanoseconds begin = files.context.begins();
    Operation operation{*this, access, side, plan};
    Status ended;
    if (operation.plan.way == plan::IoWay::slots)
        ended = co_await run_slots(executor, operation);
    else if (operation.plan.way == plan::IoWay::packed)
        ended = co_await run_packed(executor, operation);
    else
        ended = co_await run_direct(executor, operation);
    *moved = operation.moved;
    explain(access, side.on_device(), plan, operation.carrier);
    if (files.context.timeline != nullptr)
        files.context.timeline->access(plan::name(plan.way), begin, operation.moved);
    co_return ended;
}

// In atomic mode the bytes from the first to the last are this rank's meanwhile (others may read them
// while it reads). It asks again and again rather than wait: a thread that waits for a lock could be
// what its holder needs to end.
Task<Status> File::lock(Executor& executor, LockKind kind, std::int64_t low, std::int64_t high) {
    std::int64_t returned = -EAGAIN;
    while (returned == -EAGAIN || returned == -EINTR) {
        Status asked = co_await files.backend().call(
            executor,
            [handle = handle_, kind, low, high](System& system) {
                return static_cast<std::int64_t>(system.try_lock(handle, kind, low, high - low));
            },
            &returned);
        GANTRY_CO_TRY(asked);
    }
    if (returned < 0)
        co_return refused(fmt::format("locking bytes {} to {} of \"{}\"", low, high, path),
                          returned);
    co_return success();
}

Task<Status> File::transfer(Executor& executor, Access access, Bytes* moved) {
    *moved = 0;
    const Bytes bytes = access.bytes();
    if (bytes == 0) co_return success();
    if (!atomic) {
        Status ended = co_await transfer_range(executor, std::move(access), moved);
        co_return ended;
    }
    const std::int64_t low = access.view->position_of(access.first);
    const std::int64_t high = access.view->position_of(access.first + bytes - 1) + 1;
    const LockKind kind =
        access.direction == Direction::write ? LockKind::exclusive : LockKind::shared;
    Status ended = co_await lock(executor, kind, low, high);
    GANTRY_CO_TRY(ended);
    ended = co_await transfer_range(executor, std::move(access), moved);
    Status unlocked = co_await lock(executor, LockKind::none, low, high);
    co_return ended.ok() ? unlocked : ended;
}

}  // namespace gantry::io
