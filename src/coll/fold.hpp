// SPDX-License-Identifier: BSD-3-Clause
//
// PowerOfTwo: algorithms that halve and double want 2^k ranks. Of others, the first 2r ranks work in
// pairs (r: how many there are too many): the even one gives its vector to the odd one above it and
// waits for the result. Who works has a number, in the order of ranks.
//
//     7 ranks, r = 3:   0->1   2->3   4->5    6
//     numbers              0      1      2    3
#pragma once

#include <bit>

namespace gantry::coll {

struct PowerOfTwo {
    int size;    // ranks that work
    int excess;  // pairs
    int number;  // mine; -1: I wait

    PowerOfTwo(int rank, int ranks)
        : size(static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)))),
          excess(ranks - size),
          number(rank >= 2 * excess ? rank - excess
                 : rank % 2 == 1    ? rank / 2
                                    : -1) {}
    bool works() const { return number >= 0; }
    bool in_pair() const { return works() ? number < excess : true; }
    int rank_of(int of_number) const {
        return of_number < excess ? 2 * of_number + 1 : of_number + excess;
    }
    // The first rank whose elements number `of_number` stands for.
    int first_rank_of(int of_number) const {
        return of_number < excess ? 2 * of_number : of_number + excess;
    }
};

}  // namespace gantry::coll
