// SPDX-License-Identifier: BSD-3-Clause
//
// Workplace: where a rank reduces, decided once for a collective by plan/reduce_place.hpp: on the host,
// or on the GPU that its vectors are on. Each rank decides for itself, since messages are the same
// either way.
#pragma once

#include "coll/reducer.hpp"
#include "coll/team.hpp"

namespace gantry::coll {

// The reducer with its workplace, for vectors in `source` and `sink`, of which one may count no
// elements. One that has a workplace keeps it.
Reducer placed(const Team& team, const p2p::Buffer& source, const p2p::Buffer& sink,
               Reducer reducer);

// The same where the result is to be made in `sink` itself, whatever it costs elsewhere.
Reducer placed_at(const Team& team, const p2p::Buffer& sink, Reducer reducer);

// Whether the reducer may work in that buffer itself.
bool works_in(const Team& team, const p2p::Buffer& buffer, const Reducer& reducer);

// second[i] = first[i] op second[i], wherever they are. Vectors at the reducer's workplace are reduced
// where they lie; others go through host memory in pieces.
Task<Status> combine(Executor& executor, Team team, Reducer reducer, p2p::Buffer first,
                     p2p::Buffer second);

}  // namespace gantry::coll
