// SPDX-License-Identifier: BSD-3-Clause
//
// The ways of a scan; coll/scan.cpp chooses. Both keep the order of ranks.
#pragma once

#include "coll/combine.hpp"

namespace gantry::coll {

enum class Scan : std::uint8_t { inclusive, exclusive };

Task<Status> scan_doubling(Executor& executor, Team team, p2p::Buffer source, p2p::Buffer sink,
                           Reducer reducer, Scan kind);
Task<Status> scan_chain(Executor& executor, Team team, p2p::Buffer source, p2p::Buffer sink,
                        Reducer reducer, Scan kind, Bytes segment);

}  // namespace gantry::coll
