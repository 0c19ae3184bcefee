// SPDX-License-Identifier: BSD-3-Clause
//
// What every rank has one of and everybody needs: an allgather of a plain struct.
#pragma once

#include "coll/gather.hpp"
#include "transfer/buffer.hpp"

#include <utility>
#include <vector>

namespace gantry::coll {

// Everybody's, by rank.
template <class T>
Task<Status> gather_values(Executor& executor, Team team, T mine, std::vector<T>* all) {
    all->resize(static_cast<std::size_t>(team.size()));
    const p2p::Buffer said = transfer::bytes_buffer(&mine, sizeof mine);
    Blocks heard;
    heard.address = all->data();
    heard.count = sizeof mine;
    heard.layout = said.layout;
    Status gathered = co_await allgather(executor, team, said, std::move(heard), false);
    co_return gathered;
}

}  // namespace gantry::coll
