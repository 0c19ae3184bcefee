// SPDX-License-Identifier: BSD-3-Clause
//
//   stage 0   load 0 | function 0 | store 0 | load 3 ...
//   stage 1          | load 1     | function 1 | store 1 ...
//   stage 2                       | load 2 ...
//
// A stage holds a piece of both vectors, in page-locked slots where some are free: without them
// copies do not run beside the function.
#include "coll/staged_reduction.hpp"

#include "coll/host_image.hpp"
#include "coll/planner.hpp"
#include "transfer/context.hpp"
#include "transfer/pipeline/stage.hpp"

#include <algorithm>
#include <array>

namespace gantry::coll {
namespace {

constexpr std::size_t kStages = 3;

// A piece of a vector where the processor works on it: in a slot, or in memory of our own.
class PieceMemory {
  public:
    Status reserve(const Team& team, const layout::Layout& layout, std::uint64_t count) {
        const Bytes bytes = count * static_cast<Bytes>(layout.extent);
        slot_ = transfer::HeldSlot::try_take(team.context->pools, bytes, transfer::SlotUse::ahead);
        return slot_ ? success() : own_.allocate(team, count, layout);
    }
    void* memory() const { return slot_ ? slot_.memory() : own_.address(); }

  private:
    transfer::HeldSlot slot_;
    HostImage own_;
};

struct Stage {
    explicit Stage(Executor& executor) : copies(executor) {}
    Scope copies;
    PieceMemory first, second;
};

class Pipeline {
  public:
    Pipeline(Executor& executor, Team team, Reducer reducer, p2p::Buffer first, p2p::Buffer second)
        : team_(team),
          reducer_(reducer),
          first_(first),
          second_(second),
          first_on_host_(on_host(team, first)),
          second_on_host_(on_host(team, second)),
          piece_(std::clamp<std::uint64_t>(
              4 * tuning_of(team).piece /
                  static_cast<Bytes>(std::max<std::ptrdiff_t>(second.layout->extent, 1)),
              1, second.count)),
          stages_{Stage(executor), Stage(executor), Stage(executor)} {}

    std::uint64_t pieces() const { return (second_.count + piece_ - 1) / piece_; }
    Stage& stage(std::uint64_t piece) { return stages_[piece % kStages]; }

    Status reserve() {
        const std::uint64_t needed = std::min<std::uint64_t>(pieces(), kStages);
        for (std::size_t i = 0; i < needed; ++i) {
            if (!first_on_host_)
                GANTRY_TRY(stages_[i].first.reserve(team_, *first_.layout, piece_));
            if (!second_on_host_)
                GANTRY_TRY(stages_[i].second.reserve(team_, *second_.layout, piece_));
        }
        return success();
    }
    void load(Executor& executor, std::uint64_t piece) {
        Stage& stage = this->stage(piece);
        if (!first_on_host_)
            stage.copies.spawn(
                copy(executor, team_, of(first_, piece), staged(stage.first, piece)));
        if (!second_on_host_)
            stage.copies.spawn(
                copy(executor, team_, of(second_, piece), staged(stage.second, piece)));
    }
    Apply application(Executor& executor, std::uint64_t piece) {
        Stage& stage = this->stage(piece);
        const p2p::Buffer in = of(first_, piece), inout = of(second_, piece);
        return Apply(executor, reducer_, first_on_host_ ? in.address : stage.first.memory(),
                     second_on_host_ ? inout.address : stage.second.memory(), inout.count);
    }
    void store(Executor& executor, std::uint64_t piece) {
        Stage& stage = this->stage(piece);
        if (second_on_host_) return;
        stage.copies.spawn(copy(executor, team_, staged(stage.second, piece), of(second_, piece)));
    }

  private:
    p2p::Buffer of(const p2p::Buffer& vector, std::uint64_t piece) const {
        const std::uint64_t begin = piece * piece_;
        return part_of(vector, begin, std::min(piece_, vector.count - begin));
    }
    p2p::Buffer staged(const PieceMemory& vector, std::uint64_t piece) const {
        return {vector.memory(), of(second_, piece).count, second_.layout};
    }

    Team team_;
    Reducer reducer_;
    p2p::Buffer first_, second_;
    bool first_on_host_, second_on_host_;
    std::uint64_t piece_;  // elements
    std::array<Stage, kStages> stages_;
};

// Elements that do not lie side by side: all at once.
Task<Status> combine_images(Executor& executor, Team team, Reducer reducer, p2p::Buffer first,
                            p2p::Buffer second) {
    HostImage in, inout;
    for (HostImage* image : {&in, &inout}) {
        const p2p::Buffer& vector = image == &in ? first : second;
        if (on_host(team, vector)) {
            image->borrow(vector);
            continue;
        }
        Status ready = image->allocate(team, vector.count, *vector.layout);
        GANTRY_CO_TRY(ready);
        Status loaded = co_await copy(executor, team, vector, image->buffer());
        GANTRY_CO_TRY(loaded);
    }
    Apply all(executor, reducer, in.address(), inout.address(), second.count);
    co_await all;
    Status stored = co_await copy(executor, team, inout.buffer(), second);
    co_return stored;
}

}  // namespace

Task<Status> combine_staged(Executor& executor, Team team, Reducer reducer, p2p::Buffer first,
                            p2p::Buffer second) {
    if (second.count == 0) co_return success();
    const bool side_by_side = second.layout->contiguous() &&
                              static_cast<Bytes>(second.layout->extent) == second.layout->size;
    if (!side_by_side) {
        Status combined = co_await combine_images(executor, team, reducer, first, second);
        co_return combined;
    }
    Pipeline pipeline(executor, team, reducer, first, second);
    Status status = pipeline.reserve();
    GANTRY_CO_TRY(status);
    const std::uint64_t pieces = pipeline.pieces();
    pipeline.load(executor, 0);
    for (std::uint64_t piece = 0; piece < pieces && status.ok(); ++piece) {
        status = co_await pipeline.stage(piece).copies.join(executor);
        if (!status.ok()) break;
        if (piece + 1 < pieces) {
            // The piece that this stage held before is stored.
            status = co_await pipeline.stage(piece + 1).copies.join(executor);
            if (!status.ok()) break;
            pipeline.load(executor, piece + 1);
        }
        Apply one = pipeline.application(executor, piece);
        co_await one;
        pipeline.store(executor, piece);
    }
    for (std::uint64_t stage = 0; stage < kStages; ++stage) {
        Status gone = co_await pipeline.stage(stage).copies.join(executor);
        if (status.ok()) status = std::move(gone);
    }
    co_return status;
}

}  // namespace gantry::coll
