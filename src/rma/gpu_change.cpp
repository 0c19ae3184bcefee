// SPDX-License-Identifier: BSD-3-Clause
#include "rma/gpu_change.hpp"

#include "device/reduce_kernels.hpp"
#include "plan/window_ways.hpp"
#include "transfer/local_move.hpp"

#include <algorithm>

namespace gantry::rma {
namespace {

// A GPU changes so much in some ten microseconds, and others may have to wait for the lock.
constexpr Bytes kMostUnderLock = 16 * kMiB;
// An operand that has to come first: the device's memory aside is bounded.
constexpr Bytes kMostBrought = 4 * kMiB;

bool is_aligned(const std::byte* address, Bytes to) {
    return reinterpret_cast<std::uintptr_t>(address) % to == 0;
}

bool in_device_memory(const Side& side) {
    return side.location.kind == device::MemoryKind::device;
}

// Of a contiguous side.
Side from(const Side& side, Bytes first) {
    return Side{Buffer{.address = side.at(first)}, side.location};
}

bool overlaps_in_part(const Side& one, const Side& other, Bytes bytes) {
    const std::byte *const a = one.at(0), *const b = other.at(0);
    return a != b && a < b + bytes && b < a + bytes;
}

}  // namespace

GpuChange::GpuChange(transfer::Context& context, const Change& change, const Region& target,
                     Side operand, Side result)
    : context_(context),
      change_(change),
      target_(target.side.contiguous() ? from(target.side, target.first) : target.side),
      operand_(operand),
      result_(result),
      bytes_(target.bytes) {
    possible_ = decide(target);
}

bool GpuChange::decide(const Region& target) {
    using layout::Operation;
    const bool fetches = change_.verb == Verb::fetch;
    if (change_.verb == Verb::compare_and_swap || target.process != 0 || bytes_ == 0) return false;
    if (!in_device_memory(target_) || !target_.contiguous()) return false;
    if (fetches && !result_.contiguous()) return false;
    if (change_.operation == Operation::no_op) return true;
    if (!operand_.contiguous()) return false;
    if (operand_.on_device() && overlaps_in_part(operand_, target_, bytes_)) return false;
    if (change_.operation == Operation::replace) return true;
    const auto kernel = device::reduce_kernel(change_.operation, change_.items.element);
    if (!kernel || change_.items.padded() || !context_.tuning.kernels) return false;
    if (!is_aligned(target_.at(0), kernel->alignment)) return false;
    reduces_ = true;
    const int gpu = target_.location.gpu;
    operand_there_ = in_device_memory(operand_) && operand_.location.gpu == gpu &&
                     is_aligned(operand_.at(0), kernel->alignment);
    const plan::ChangeQuestion question{.bytes = bytes_,
                                        .operand_there = operand_there_,
                                        .operand_on_device = operand_.on_device(),
                                        .time_sliced = context_.arbiter.is_time_sliced(gpu)};
    return plan::change_place(context_.device.gpu_facts(gpu), question,
                              context_.config.reduce_on) == plan::ChangePlace::gpu;
}

Bytes GpuChange::piece() const {
    const bool waits_for_host = operand_.buffer.address != nullptr && !operand_.on_device();
    const bool short_pieces = !reads_operand_in_place() || waits_for_host;
    return std::min(short_pieces ? kMostBrought : kMostUnderLock, bytes_ - done_);
}

Task<Status> GpuChange::bring(Executor& executor) {
    if (reads_operand_in_place()) co_return success();
    if (!scratch_)
        scratch_.emplace(context_.device, target_.at(0), piece(),
                         transfer::BounceBuffer::Place::gpu);
    if (scratch_->data() == nullptr)
        co_return failure(MPI_ERR_UNSUPPORTED_OPERATION,
                          "no memory on GPU {} for the operand of an accumulate",
                          target_.location.gpu);
    Status brought =
        co_await transfer::device_copy(executor, context_, scratch_->data(), operand_.at(done_),
                                       piece(), target_.location.gpu, device::Engine::automatic);
    co_return brought;
}

Task<Status> GpuChange::make(Executor& executor) {
    const Bytes some = piece();
    const Side target = from(target_, done_);
    if (change_.verb == Verb::fetch) {
        Status fetched = co_await transfer::move_locally(executor, context_, target, some,
                                                         from(result_, done_), some);
        GANTRY_CO_TRY(fetched);
    }
    if (reduces_) {
        const int gpu = target_.location.gpu;
        context_.arbiter.use(gpu);
        const void* const operand = operand_there_ ? operand_.at(done_) : scratch_->data();
        const void* const sources[] = {operand, target.at(0)};
        device::Reduce reduce;
        reduce.operation = change_.operation;
        reduce.element = change_.items.element;
        reduce.sources = sources;
        reduce.destination = target.at(0);
        reduce.count = some / change_.items.size;
        reduce.gpu = gpu;
        Completion changed(executor);
        context_.device.reduce(reduce, changed);
        Status status = co_await changed;
        GANTRY_CO_TRY(status);
    } else if (change_.operation != layout::Operation::no_op) {
        Status replaced = co_await transfer::move_locally(executor, context_, from(operand_, done_),
                                                          some, target, some);
        GANTRY_CO_TRY(replaced);
    }
    done_ += some;
    co_return success();
}

}  // namespace gantry::rma
