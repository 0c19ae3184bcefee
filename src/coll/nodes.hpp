// SPDX-License-Identifier: BSD-3-Clause
//
// Nodes: the ranks of a team as they lie on nodes, for operations that go inside nodes first and then
// between them.
//
//     node 0: ranks 0 1 2 3     inside: the ranks of a node
//     node 1: ranks 4 5 6       number: where a rank stands inside its node
//                               across: the ranks of one number, one of each node (numbers 0, 1, 2)
//
// A hierarchical operation is a row of operations of these smaller teams, each planned for itself:
// inside a node they go over the node segment and mapped memory, across nodes by messages.
#pragma once

#include "coll/exchange.hpp"
#include "coll/planner.hpp"
#include "coll/team.hpp"

#include <vector>

namespace gantry::coll {

struct Nodes {
    // Of a team whose ranks lie on several nodes.
    Nodes(const Team& team, Common* common);
    Nodes(const Nodes&) = delete;
    Nodes& operator=(const Nodes&) = delete;

    int number() const { return inside.rank; }
    int node() const { return across.rank; }
    int node_of(int rank) const { return place_of[static_cast<std::size_t>(rank)].node; }
    int number_of(int rank) const { return place_of[static_cast<std::size_t>(rank)].number; }
    // Where the blocks of that node begin, and those of the next one, where ranks of nodes follow each
    // other.
    int first_of(int of_node) const { return starts[static_cast<std::size_t>(of_node)]; }
    int count() const { return static_cast<int>(starts.size()) - 1; }

    struct Place {
        int node, number;
    };
    std::vector<Place> place_of;  // by rank of the team
    std::vector<int> starts;
    // Numbers that every node has: so many teams `across` there are.
    int leaders = 1;
    // `across` counts where number() < leaders; its ranks are nodes.
    p2p::Group inside, across;
    Planner inside_planner, across_planner;
};

// Parts of one hierarchical operation, whose run is `run`.
Team inside_of(const Run& run, Nodes& nodes, int phase);
Team across_of(const Run& run, Nodes& nodes, int phase);
// Of an operation of so many bytes whose ranks may have told each other what memory they bring: then it is
// known of those of a number, too.
Team across_of(const Run& run, Nodes& nodes, int phase, plan::Collective operation, Bytes bytes);

// What an operation of a team needs; made at its first use.
Nodes& nodes_of(const Team& team);

}  // namespace gantry::coll
