// SPDX-License-Identifier: BSD-3-Clause
//
// Questions of collectives, as tests ask them.
#pragma once

#include "plan/coll_facts.hpp"
#include "plan/coll_plan.hpp"

namespace gantry::plan {

inline CollQuestion question(Collective operation, Bytes bytes, int ranks, int nodes = 1) {
    CollQuestion asked{.operation = operation, .bytes = bytes, .count = bytes / 8};
    asked.shape = {.ranks = ranks,
                   .nodes = nodes,
                   .most = (ranks + nodes - 1) / nodes,
                   .fewest = ranks / nodes,
                   .in_order = true};
    return asked;
}

inline CollFacts facts_of(const char* machine) {
    Result<model::Machine> described = model::load(machine);
    GANTRY_ASSERT(described.ok());
    return coll_facts_of(*described);
}

// Of ranks of one node that have met, or not yet.
inline CollQuestion on_node(Collective operation, Bytes bytes, int ranks, CollMemory memory) {
    CollQuestion asked = question(operation, bytes, ranks);
    asked.node_segment.there = true;
    asked.memory = memory;
    return asked;
}

}  // namespace gantry::plan
