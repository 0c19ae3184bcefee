// SPDX-License-Identifier: BSD-3-Clause
//
// The steps of reductions: vectors that meet become one.
#pragma once

#include "coll/exchange.hpp"
#include "coll/image.hpp"
#include "coll/reducer.hpp"

namespace gantry::coll {

// second[i] = first[i] op second[i], where the reducer works.
Task<Status> combine(Executor& executor, Run& run, Reducer reducer, p2p::Buffer first,
                     p2p::Buffer second);

// Which operand this rank's own elements are, for operations that do not commute.
enum class Mine : std::uint8_t { left, right };

// Sends `outgoing`, and combines what arrives into `into`, piece by piece: while one is combined, the
// next is on its way. `outgoing` may be `into`. The partner does the same, so both cut alike.
// Memory: two pieces.
Task<Status> exchange_and_combine(Executor& executor, Run& run, p2p::Buffer outgoing, int to,
                                  p2p::Buffer into, int from, Reducer reducer, Mine mine);

// The same without combining: what arrives is kept.
Task<Status> exchange_pieces(Executor& executor, Run& run, p2p::Buffer outgoing, int to,
                             p2p::Buffer incoming, int from);

// Elements of a piece.
std::uint64_t elements_of_piece(const layout::Layout& layout, Bytes piece);

}  // namespace gantry::coll
