// SPDX-License-Identifier: BSD-3-Clause
//
// Reductions inside a node: its ranks reduce what the others have, without messages (node_call.hpp).
//
//   host memory, small   every rank's vector lies in its cell; who wants a result reads all of them
//   device memory        a kernel reads the vectors of all ranks where they are, through mappings:
//     one shot             every rank reduces whole vectors: one launch, for short ones
//     two shots            every rank reduces one share, and stores it into the memory of all others:
//                          in one launch, too, for long vectors, in place, and where ranks share a GPU
//   anything else        goes by messages
//
// plan/coll_plan.hpp says whether ranks meet at all, and which of these ways they take then.
//
// The vectors are reduced in the order of the ranks, whoever does it, so results have the same bits
// everywhere and every time.
#pragma once

#include "base/task.hpp"
#include "coll/blocks.hpp"
#include "coll/planner.hpp"
#include "coll/reducer.hpp"
#include "coll/team.hpp"

namespace gantry::coll {

// Who gets what of the reduction of all vectors.
enum class Share : std::uint8_t {
    all,     // everybody gets everything (allreduce)
    root,    // the root does (reduce)
    part,    // everybody gets a part (reduce_scatter)
    before,  // the reduction of those before it (exscan)
    up_to,   // likewise, its own included (scan)
};

// A rank's call of a reduction.
struct ReductionCall {
    ReductionCall(p2p::Buffer from, p2p::Buffer to, const Reducer& how, Share who)
        : source(from), sink(to), reducer(how), share(who) {}

    p2p::Buffer source, sink;  // the sink counts where something is got; the two may be one
    Reducer reducer;
    Share share = Share::all;
    int root = 0;
    Blocks parts;  // Share::part: counts and displacements, for all ranks

    // Whether that member gets something.
    bool is_for(int member) const {
        return (share != Share::root || member == root) && (share != Share::before || member > 0);
    }
};

// `call` outlives this. Its reducer knows then where the vectors lie.
//
// How the ranks go, now that they have met: all have the same plan. With one of the node segment (goes_over_node_segment)
// this rank's part is done; with any other one nothing has happened on any rank, and the reduction
// shall go by messages.
Task<Result<plan::CollPlan>> reduce_directly(Executor& executor, Team team, ReductionCall* call,
                                             plan::CallQuestion question);

}  // namespace gantry::coll
