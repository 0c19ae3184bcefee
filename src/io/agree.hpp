// SPDX-License-Identifier: BSD-3-Clause
//
// What the ranks of a file tell each other: small values, and one outcome for all.
#pragma once

#include "base/task.hpp"
#include "coll/gather.hpp"
#include "coll/team.hpp"
#include "transfer/buffer.hpp"

#include <type_traits>
#include <vector>

namespace gantry::io {

// Everybody's value, by rank.
template <class T>
Task<Status> tell_all(Executor& executor, coll::Team team, T mine, std::vector<T>* all) {
    static_assert(std::is_trivially_copyable_v<T>);
    all->assign(static_cast<std::size_t>(team.size()), T{});
    const p2p::Buffer own = transfer::bytes_buffer(&mine, sizeof mine);
    coll::Blocks blocks;
    blocks.address = all->data();
    blocks.count = own.count;
    blocks.layout = own.layout;
    Status told = co_await coll::allgather(executor, team, own, std::move(blocks), false);
    co_return told;
}

// The ranks' outcome: success where all have it, else a failure on all of them. A rank that failed
// keeps its own sentence; the others hear that of the lowest rank with a reason of its own. `least`, where
// it is not null: a number of each rank's, and behind the call the smallest of all.
Task<Status> agree(Executor& executor, coll::Team team, Status mine, std::int64_t* least = nullptr);

// Everybody's value, unless the call is refused on some rank, because of its arguments there: then it fails on all of
// them, as agree() has it. That nobody refuses costs nothing.
template <class T>
Task<Status> tell_unless_refused(Executor& executor, coll::Team team, Status refused, T mine,
                                 std::vector<T>* all) {
    struct Said {
        T value;
        int error_class;
    };
    std::vector<Said> said;
    const Said own{mine, refused.error_class()};
    Status told = co_await tell_all(executor, team, own, &said);
    GANTRY_CO_TRY(told);
    for (const Said& each : said)
        if (each.error_class != MPI_SUCCESS) {
            Status agreed = co_await agree(executor, team, std::move(refused));
            co_return agreed;
        }
    all->clear();
    for (const Said& each : said)
        all->push_back(each.value);
    co_return success();
}

}  // namespace gantry::io
