// SPDX-License-Identifier: BSD-3-Clause
//
// Reduce to rank 0, then scatter: right for every operation, datatype and memory kind.
#include "coll/reduce_scatter.hpp"

#include "coll/gather.hpp"
#include "coll/host_image.hpp"
#include "coll/reduce.hpp"

namespace gantry::coll {

Task<Status> reduce_scatter(Executor& executor, Team team, p2p::Buffer source, Blocks shares,
                            p2p::Buffer sink, Reducer reducer) {
    HostImage whole;
    p2p::Buffer reduced_into = source;  // not written except at rank 0
    if (team.rank() == 0) {
        Status ready = whole.allocate(source.count, *source.layout);
        GANTRY_CO_TRY(ready);
        reduced_into = whole.buffer();
    }
    Status reduced = co_await reduce(executor, team, source, reduced_into, reducer, 0);
    GANTRY_CO_TRY(reduced);
    shares.address = reduced_into.address;
    Status scattered = co_await scatter(executor, team, shares, sink, 0, false);
    co_return scattered;
}

}  // namespace gantry::coll
