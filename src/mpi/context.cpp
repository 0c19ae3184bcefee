// SPDX-License-Identifier: BSD-3-Clause
//
// See context.hpp. 2^31 ids last for the life of a job; running out is an error, not a collision.
#include "mpi/context.hpp"

#include "coll/allreduce.hpp"
#include "coll/exchange.hpp"
#include "mpi/engine.hpp"

#include <algorithm>

namespace gantry::mpi {

Task<Status> agree_on_context(Executor& executor, Engine& engine, coll::Team team, std::uint32_t* context) {
    static const layout::Layout uint32 = layout::contiguous_layout(sizeof(std::uint32_t));
    std::uint32_t mine = engine.next_context;
    std::uint32_t largest = mine;
    coll::Reducer maximum;
    maximum.predefined = layout::reduction(layout::Operation::max, layout::Element::uint32);
    maximum.extent = sizeof(std::uint32_t);
    p2p::Buffer from;
    from.address = &mine;
    from.count = 1;
    from.layout = &uint32;
    p2p::Buffer to = from;
    to.address = &largest;
    Status agreed = co_await coll::allreduce(executor, team, from, to, maximum);
    GANTRY_CO_TRY(agreed);
    if (largest >= p2p::kCollectiveContext) {
        co_return failure(MPI_ERR_OTHER, "all 2^31 communicator contexts of this job are used; make fewer communicators");
    }
    engine.next_context = std::max(engine.next_context, largest + 1);
    *context = largest;
    co_return success();
}

}  // namespace gantry::mpi
