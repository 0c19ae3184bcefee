// SPDX-License-Identifier: BSD-3-Clause
//
// A barrier inside each group, a word between the first ranks of both, and a word from each to its
// group: who hears of it knows that everybody of the other group has entered.
#include "coll/barrier.hpp"
#include "coll/bcast.hpp"
#include "coll/exchange.hpp"
#include "coll/inter.hpp"

namespace gantry::coll {

Task<Status> inter_barrier(Executor& executor, Sides sides) {
    const p2p::Buffer nothing = transfer::bytes_buffer(nullptr, 0);
    FirstFailure failed;
    Status met = co_await barrier(executor, sides.mine);
    failed.note(std::move(met));
    if (sides.mine.rank() == 0) {
        Status told = co_await exchange(executor, sides.theirs, nothing, 0, nothing, 0);
        failed.note(std::move(told));
    }
    Status passed_on = co_await bcast(executor, sides.mine, nothing, 0);
    failed.note(std::move(passed_on));
    co_return failed.status();
}

}  // namespace gantry::coll
