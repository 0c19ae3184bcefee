// SPDX-License-Identifier: BSD-3-Clause
//
// Reduce to rank 0, then scatter: right for every operation, datatype and memory kind.
#include "coll/reduce_scatter.hpp"

#include "coll/direct_exchange.hpp"
#include "coll/direct_reduce.hpp"
#include "coll/gather.hpp"
#include "coll/reduce.hpp"
#include "coll/workplace.hpp"

namespace gantry::coll {

namespace {

Task<Status> by_messages(Executor& executor, Team team, p2p::Buffer source, Blocks shares,
                         p2p::Buffer sink, Reducer reducer) {
    reducer = placed(team, source, sink, reducer);
    Image whole;
    Status reduced = co_await reduce_into(executor, team, source, &whole, reducer, 0);
    GANTRY_CO_TRY(reduced);
    shares.address = whole.address();  // read at rank 0
    Status scattered = co_await scatter(executor, team, shares, sink, 0, false);
    co_return scattered;
}

}  // namespace

Task<Status> reduce_scatter(Executor& executor, Team team, p2p::Buffer source, Blocks shares,
                            p2p::Buffer sink, Reducer reducer) {
    DirectReduction direct(source, sink, reducer, Share::part);
    direct.parts = shares;
    return directly_or(executor, reduce_directly(executor, team, std::move(direct)),
                       by_messages(executor, team, source, shares, sink, reducer));
}

}  // namespace gantry::coll
