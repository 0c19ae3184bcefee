// SPDX-License-Identifier: BSD-3-Clause
//
// A reduction under way (reduce.hpp). reduce_offer.cpp makes its offer.
#pragma once

#include "coll/device_scratch.hpp"
#include "coll/node/reduce.hpp"
#include "coll/host_image.hpp"
#include "coll/node/node_call.hpp"

#include <cstdint>
#include <utility>

namespace gantry::coll {

struct RunningReduction final : NodeCall {
    RunningReduction(const Team& its_team, const ReductionCall& its,
                     const plan::CallQuestion& its_question)
        : NodeCall(its_team, its_question), what(its) {}

    ReductionCall what;
    // Of vectors that cannot be used where they lie (make_reachable).
    DeviceScratch source_scratch, sink_scratch;
    p2p::Buffer sink_later;  // where the result goes from the scratch memory
    HostImage share;         // of a result in host memory that has no other place
    bool unusable = false;

    bool wants(int member) const { return what.is_for(member); }
    // The elements of the vectors that a rank gets.
    std::pair<std::uint64_t, std::uint64_t> range_of(int member) const {
        if (what.share != Share::part) return {0, what.source.count};
        const auto index = static_cast<std::size_t>(member);
        return {static_cast<std::uint64_t>(what.parts.displacements[index]),
                static_cast<std::uint64_t>(what.parts.counts[index])};
    }
    // How many vectors, of the first ranks, make up what a rank gets.
    int operands_of(int member) const {
        if (what.share == Share::before) return member;
        return what.share == Share::up_to ? member + 1 : size();
    }
    int worker(int member) const { return worker_of(offers(), member); }
    bool any_in_place() const { return coll::any_in_place(offers(), what); }

  private:
    Task<Result<MemoryOffer>> bring(Executor& executor) override;
    AgreedQuestion ask(int, int) const override { return AgreedQuestion(question, offers(), what); }
    Task<Status> act(Executor& executor, plan::CollPlan plan) override;
    Task<Status> settle(Executor& executor) override;
};

// Whether a rank's result lies where the others may still read its vector. Where everybody gets
// everything, or the root does, only the owner of a share reads it.
bool is_in_the_way(const RunningReduction& running);

}  // namespace gantry::coll
