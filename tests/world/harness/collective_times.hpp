// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives of all ranks of a described cluster, in the world: what one takes, as it is chosen or with
// an algorithm fixed, and what the planner expected.
#pragma once

#include "plan/coll_plan.hpp"
#include "world/harness/cluster.hpp"
#include "world/harness/collectives.hpp"

#include <optional>

namespace gantry::world {

// Timed calls one right behind the other, as a program makes them, or each alone: the ranks meet before it.
enum class Calls : std::uint8_t { in_a_row, apart };

struct CollectiveCase {
    Kind kind = Kind::barrier;
    Bytes bytes = 0;  // of a block or vector
    plan::Algorithm fixed = plan::Algorithm::automatic;
    Place place = Place::device;
    int warm_ups = 2;  // calls before those that are timed
    Calls calls = Calls::in_a_row;
    int leaders = 0;    // of hierarchical reductions; 0: chosen
    Bytes segment = 0;  // of what goes in pieces; 0: chosen
};

struct CollectiveTime {
    Nanoseconds time = 0;  // of one on average, from the first start to the last end
    double envelopes = 0;  // of a rank
};
// Every number is checked.
CollectiveTime measure_collective(const Cluster& cluster, int ranks, const CollectiveCase& asked);

// Calls after which ranks of several nodes have told each other of their memory (coll/known_memory.hpp) and
// have mapped what they use of each other's.
inline constexpr int kMemoryIsKnown = 10;

// What all ranks of such a call choose, when they know each other's memory: what lost is in it, too.
plan::CollChoice choice_of(const Cluster& cluster, int ranks, const CollectiveCase& asked);

}  // namespace gantry::world
