// SPDX-License-Identifier: BSD-3-Clause
#include "io/agree.hpp"

#include "coll/bcast.hpp"

#include <algorithm>
#include <array>

namespace gantry::io {

Task<Status> agree(Executor& executor, coll::Team team, Status mine) {
    if (team.size() == 1) co_return mine;
    std::vector<int> classes;
    const int my_class = mine.error_class();
    Status told = co_await tell_all(executor, team, my_class, &classes);
    if (!told.ok()) co_return mine.ok() ? told : mine;
    // MPI_ERR_OTHER is what a failure looks like from afar.
    auto failed = std::ranges::find_if(
        classes, [](int each) { return each != MPI_SUCCESS && each != MPI_ERR_OTHER; });
    if (failed == classes.end())
        failed = std::ranges::find_if(classes, [](int each) { return each != MPI_SUCCESS; });
    if (failed == classes.end()) co_return success();
    const int from = static_cast<int>(failed - classes.begin());
    std::array<char, 400> words{};
    if (from == team.rank()) mine.text().copy(words.data(), words.size() - 1);
    const p2p::Buffer sentence = transfer::bytes_buffer(words.data(), words.size());
    Status heard = co_await coll::bcast(executor, team, sentence, from);
    if (!mine.ok() && mine.error_class() != MPI_ERR_OTHER) co_return mine;
    if (!heard.ok()) co_return heard;
    co_return failure(*failed, "on rank {}: {}", from, words.data());
}

}  // namespace gantry::io
