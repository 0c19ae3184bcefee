// SPDX-License-Identifier: BSD-3-Clause
//
// Reduce to rank 0, then scatter: right for every operation, datatype and memory kind.
#include "coll/reduce_scatter.hpp"

#include "coll/direct_reduce.hpp"
#include "coll/gather.hpp"
#include "coll/reduce.hpp"
#include "coll/workplace.hpp"

namespace gantry::coll {

Task<Status> reduce_scatter(Executor& executor, Team team, p2p::Buffer source, Blocks shares,
                            p2p::Buffer sink, Reducer reducer) {
    DirectReduction direct(source, sink, reducer, Share::part);
    direct.parts = shares;
    Result<bool> directly = co_await reduce_directly(executor, team, std::move(direct));
    if (!directly.ok()) co_return std::move(directly).status();
    if (*directly) co_return success();
    reducer = placed(team, source, sink, reducer);
    Image whole;
    Status reduced = co_await reduce_into(executor, team, source, &whole, reducer, 0);
    GANTRY_CO_TRY(reduced);
    shares.address = whole.address();  // read at rank 0
    Status scattered = co_await scatter(executor, team, shares, sink, 0, false);
    co_return scattered;
}

}  // namespace gantry::coll
