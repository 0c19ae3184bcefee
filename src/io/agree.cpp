// SPDX-License-Identifier: BSD-3-Clause
#include "io/agree.hpp"

#include "coll/bcast.hpp"

#include <algorithm>
#include <array>

namespace gantry::io {

namespace {

struct Outcome {
    std::int64_t number = 0;
    int error_class = MPI_SUCCESS;
    int unused = 0;
    bool failed() const { return error_class != MPI_SUCCESS; }
};

}  // namespace

Task<Status> agree(Executor& executor, coll::Team team, Status mine, std::int64_t* least) {
    if (team.size() == 1) co_return mine;
    std::vector<Outcome> all;
    const Outcome my_outcome{least != nullptr ? *least : 0, mine.error_class()};
    Status told = co_await tell_all(executor, team, my_outcome, &all);
    if (!told.ok()) co_return mine.ok() ? told : mine;
    if (least != nullptr) *least = std::ranges::min(all, {}, &Outcome::number).number;
    // MPI_ERR_OTHER is what a failure looks like from afar.
    auto failed = std::ranges::find_if(all, [](const Outcome& each) {
        return each.failed() && each.error_class != MPI_ERR_OTHER;
    });
    if (failed == all.end()) failed = std::ranges::find_if(all, &Outcome::failed);
    if (failed == all.end()) co_return success();
    const int from = static_cast<int>(failed - all.begin());
    std::array<char, 400> words{};
    if (from == team.rank()) mine.text().copy(words.data(), words.size() - 1);
    const p2p::Buffer sentence = transfer::bytes_buffer(words.data(), words.size());
    Status heard = co_await coll::bcast(executor, team, sentence, from);
    if (!mine.ok() && mine.error_class() != MPI_ERR_OTHER) co_return mine;
    if (!heard.ok()) co_return heard;
    co_return failure(failed->error_class, "on rank {}: {}", from, words.data());
}

}  // namespace gantry::io
