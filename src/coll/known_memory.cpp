// SPDX-License-Identifier: BSD-3-Clause
#include "coll/known_memory.hpp"

#include "coll/gather_values.hpp"
#include "coll/planner.hpp"
#include "coll/tell_memory.hpp"

namespace gantry::coll {

// Of calls that nobody has made since the last time both bits are set: what was known of them stays.
void KnownMemory::hear(std::uint64_t all) {
    for (int place = 0; place < 4 * plan::kCollectives; place += 2) {
        const std::uint64_t both = (kHost | kDevice) << place;
        if ((all & both) != both) known_ = (known_ & ~both) | (all & both);
    }
    may_be_ = ~std::uint64_t{0};
}

Task<Status> then_tell_memory(Executor& executor, Task<Status> call, Team team) {
    Status done = co_await std::move(call);
    KnownMemory& known = team.planner->known_memory();
    std::vector<std::uint64_t> all;
    Status told = co_await gather_values(executor, team, known.told(), &all);
    if (told.ok()) {
        std::uint64_t common = ~std::uint64_t{0};
        for (const std::uint64_t each : all)
            common &= each;
        known.hear(common);
    }
    co_return done.ok() ? told : done;
}

}  // namespace gantry::coll
