// SPDX-License-Identifier: BSD-3-Clause
#include "coll/staged_vector.hpp"

#include "coll/host_image.hpp"
#include "plan/coll_limits.hpp"
#include "transfer/context.hpp"

#include <algorithm>

namespace gantry::coll {
namespace {

constexpr plan::StagedVectorLimits kLimits = plan::kStagedVectorLimits;

}  // namespace

bool is_staged_to(const Team& team, int rank) {
    transfer::Context& context = *team.context;
    const int peer = team.group->peer(team.in_group(rank));
    if (peer == context.world_rank) return false;
    const transport::PeerFacts& facts = context.endpoints.to(peer).facts;
    return !facts.shared_memory && !facts.device_memory;
}

StagedVector::StagedVector(Executor& executor, const Team& team, const p2p::Buffer& vector,
                           Reads reads)
    : team_(team), vector_(vector), whole_(executor) {
    transfer::Context& context = *team.context;
    const Bytes bytes = vector.bytes();
    if (!context.device.active() || bytes == 0 || bytes > kLimits.longest || on_host(team, vector))
        return;
    whole_.slot = transfer::HeldSlot::try_take(context.pools, bytes, transfer::SlotUse::ahead);
    if (on()) start_reading(executor, reads);
}

p2p::Buffer StagedVector::bytes() const {
    return on() ? whole_.bytes(vector_.bytes()) : vector_;
}

// The first copy is a short one: nothing can leave before it has ended.
void StagedVector::start_reading(Executor& executor, Reads reads) {
    const Bytes bytes = vector_.bytes();
    for (Bytes done = 0; reads != Reads::nothing && done < bytes;) {
        const Bytes length =
            std::min(done == 0 ? kLimits.first_stage : kLimits.stage, bytes - done);
        auto stage = std::make_unique<Read>(executor);
        stage->begin = reads == Reads::from_the_start ? done : bytes - done - length;
        stage->end = stage->begin + length;
        const p2p::Buffer from = part_of(vector_, stage->begin, length);
        stage->copies.spawn(
            copy(executor, team_, from, part_of(this->bytes(), stage->begin, length)));
        reads_.push_back(std::move(stage));
        done += length;
    }
}

Task<Status> StagedVector::wait_read(Executor& executor, Bytes begin, Bytes end) {
    FirstFailure failed;
    for (const std::unique_ptr<Read>& stage : reads_) {
        if (stage->end <= begin || stage->begin >= end) continue;
        Status is_there = co_await stage->copies.join(executor);
        failed.note(std::move(is_there));
    }
    co_return failed.status();
}

void StagedVector::store(Bytes begin, Bytes end) {
    if (begin >= end) return;
    whole_.copies.spawn(copy(team_.executor(), team_, part_of(bytes(), begin, end - begin),
                             part_of(vector_, begin, end - begin)));
}

void StagedVector::came(Bytes begin, Bytes end) {
    if (!on() || begin >= end) return;
    const bool joins = run_begin_ < run_end_ && (begin == run_end_ || end == run_begin_);
    if (!joins) store(run_begin_, run_end_);
    run_begin_ = joins ? std::min(begin, run_begin_) : begin;
    run_end_ = joins ? std::max(end, run_end_) : end;
    if (run_end_ - run_begin_ < kLimits.stage) return;
    store(run_begin_, run_end_);
    run_begin_ = run_end_ = 0;
}

Task<Status> StagedVector::all(Executor& executor) {
    store(run_begin_, run_end_);
    run_begin_ = run_end_ = 0;
    FirstFailure failed;
    Status was_read = co_await wait_read(executor, 0, vector_.bytes());
    failed.note(std::move(was_read));
    Status stored = co_await whole_.copies.join(executor);
    failed.note(std::move(stored));
    co_return failed.status();
}

}  // namespace gantry::coll
