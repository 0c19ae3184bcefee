// SPDX-License-Identifier: BSD-3-Clause
//
// Reductions of long vectors in host memory of one node, once the ranks have met (reduce.hpp): each
// reads what it combines where it lies.
//
//   allreduce, reduce           each rank combines one share of all vectors; when all have done so, those
//                               that want the result read the shares of the others
//   reduce_scatter, scans       each combines what it gets itself; so does the root of a reduce of two ranks,
//                               which would read as much in shares
//
//     bytes: 2 (P - 1) / P of the vector are read by each rank, (P - 1) / P for a reduce_scatter;
//     memory: two or three pieces (GANTRY_COLL_PIECE); a share, where a rank gets no result
//
// In place a rank combines its share where it lies: nobody else reads its vector there. Before, all try whether they
// can read, and say so: what has been overwritten can go no other way.
//
// All is combined in the order of the ranks, by one rank each element: the bits are the same everywhere.
#pragma once

#include "base/task.hpp"
#include "coll/node/reduce.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace gantry::coll {

// Elements [first, second) of a vector.
using Elements = std::pair<std::uint64_t, std::uint64_t>;
// The share of a member, of `count` elements of all.
inline Elements share_of(std::uint64_t count, int member, int size) {
    const auto parts = static_cast<std::uint64_t>(size), part = static_cast<std::uint64_t>(member);
    return {count / parts * part + std::min(count % parts, part),
            count / parts * (part + 1) + std::min(count % parts, part + 1)};
}

inline bool is_in_shares(Share share, int size) {
    return share == Share::all || (share == Share::root && size > 2);
}

struct RunningReduction;

// This rank's part; ends with the first failure of any rank.
Task<Status> reduce_by_reading(Executor& executor, RunningReduction& running);

}  // namespace gantry::coll
