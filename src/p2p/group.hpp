// SPDX-License-Identifier: BSD-3-Clause
//
// What point-to-point, collectives and RMA need of a communicator: who the ranks are and a context
// id that keeps its messages apart. The MPI layer adds names, attributes and error handlers around
// it.
#pragma once

#include "base/ledger.hpp"

#include <cstdint>
#include <vector>

namespace gantry::p2p {

// Collectives and internal agreement run in their own context beside the user's: same id with this
// bit set.
inline constexpr std::uint32_t kCollectiveContext = 0x8000'0000u;
// Partitioned communication has two more: with this bit, and with both.
inline constexpr std::uint32_t kPartitionedContext = 0x4000'0000u;
// The ranks of one node, and those that stand for the nodes, inside a collective of all.
inline constexpr std::uint32_t kNodesContext = 0x2000'0000u;

// Of any of these: the one that the program's messages have.
constexpr std::uint32_t base_context(std::uint32_t context) {
    return context & ~(kCollectiveContext | kPartitionedContext | kNodesContext);
}

struct Group {
    std::uint32_t context = 0;
    int rank = 0;            // mine in this communicator
    std::vector<int> peers;  // communicator rank -> peer (world rank)
    // Other groups with other members use this context at the same time (agreements among a few
    // ranks): a rank's number in one says nothing in another, so messages go by world rank.
    bool shared_context = false;
    // With a shared context, among ranks of several jobs, which number each other differently: what all of
    // them call each rank instead. Empty: its world rank.
    std::vector<int> numbers;
    // Of the peers that were lost, in the order in which this rank heard of it, the program has acknowledged so
    // many here (Messenger::losses).
    std::uint32_t acknowledged = 0;
    BothWays* traffic = nullptr;  // what goes over it is counted there; null: in no communicator's
    // What goes over it are messages of the program, with buffers that it named.
    bool is_of_program() const {
        return (context & (kCollectiveContext | kPartitionedContext)) == 0;
    }
    int size() const { return static_cast<int>(peers.size()); }
    int peer(int of_rank) const { return peers[static_cast<std::size_t>(of_rank)]; }
    // What the envelope of a message from this rank says.
    int source_number(int of_rank) const {
        if (!shared_context) return of_rank;
        return numbers.empty() ? peer(of_rank) : numbers[static_cast<std::size_t>(of_rank)];
    }
};

}  // namespace gantry::p2p
