// SPDX-License-Identifier: BSD-3-Clause
//
// What the planner believes a collective costs: an algorithm is a row of steps, a step is what one
// rank sends and receives at once. Between nodes a message costs its latency and its bytes, both
// directions side by side; those of its ranks that cross share its cards. Inside a node the processors carry
// the bytes, so sending and receiving at once takes twice as long, and ranks that share a processor
// take turns. Between device memories of a node the GPUs carry them, both directions side by side, and
// every step of a reduction is a launch.
#pragma once

#include "plan/coll_plan.hpp"

#include <array>

namespace gantry::plan {

// What one of `sharing` ranks of a node reaches that cross the network at once: each has a card of its own
// while there are enough of them.
double network_rate(const CollFacts& facts, int sharing);

// One question and everything derived from it once. Times are nanoseconds.
struct CollAsk {
    const CollQuestion& question;
    const CollFacts& facts;
    const CollTuning& tuning;
    int ranks;
    int rounds;  // the logarithm of ranks, rounded up
    Bytes bytes;
    double crowd;  // ranks of a node for each of its processors, at least 1
    double
        turn;  // what waiting for another rank of the node takes beyond the work, where they share

    CollAsk(const CollQuestion& q, const CollFacts& f, const CollTuning& t);

    bool on_device() const {
        return question.memory == CollMemory::device || question.memory == CollMemory::own_device ||
               question.node_segment.on_devices;
    }
    bool power_of_two() const { return (ranks & (ranks - 1)) == 0; }
    int lower_power_of_two() const;
    Bytes share() const { return bytes / static_cast<Bytes>(ranks); }

    // Every rank sends so much to the one `distance` above it (around the end) and receives as much.
    double shift(Bytes each, int distance) const;
    // The same from one neighbor to the next, right behind another such step: what was under way is there
    // meanwhile.
    double further_shift(Bytes each) const;
    // Whether what lies in device memory would be copied to the host on its way to other nodes. Nobody knows
    // here whether it does: programs bring few numbers in host memory, and long vectors in device memory.
    bool may_be_staged() const;
    // Such copies that nothing hides: of so many bytes out of a GPU, and of so many into another one.
    double staging(Bytes out, Bytes in) const;
    // The bytes of one alone.
    double copied_to_host(Bytes bytes_of_copy) const;
    // Pairs whose numbers differ by that power of two swap so much.
    double swap(Bytes each, int distance) const;
    // One message in a tree between ranks of that distance; the receiver does nothing else.
    double one_way(Bytes each, int distance) const;
    // Every rank tells every other at once, so much to each.
    double to_all(Bytes each) const;
    // One rank hears from all others or tells them, so much each.
    double at_root(Bytes each) const;
    // The same between device memories of a node: one rank and `others`.
    double from_device(Bytes each, int others) const;
    // To neighbors on this node, in as many messages as the question counts, so much together.
    double to_neighbors(Bytes all) const;
    // Blocks of a neighbor exchange; many, where nobody has counted them.
    Bytes neighbor_blocks() const { return question.count != 0 ? question.count : 32; }
    double combine(Bytes vector) const;
    double copy(Bytes moved) const;
    // A rank's block for itself, where copying it is a step of its own.
    double own_block(Bytes block) const { return on_device() ? copy(block) : 0; }

  private:
    double between_devices(Bytes each, int directions) const;
    double inside(Bytes each, int directions) const;
    double between(Bytes each, int sharing) const;
    double to_other_node(Bytes each) const;
};

// A way that the operation could go.
struct CollCandidate {
    Algorithm algorithm = Algorithm::linear;
    double time = 0;
    const char* why = "";  // if it wins
    const char* impossible = nullptr;
    Bytes segment = 0;
    int outstanding = 0;
    int leaders = 0;
    bool rank_order = false;  // of a reduction: as GANTRY_REPRODUCIBLE wants it
};

class CollCandidates {
  public:
    void add(const CollCandidate& candidate) {
        if (count_ < list_.size()) list_[count_++] = candidate;
    }
    CollCandidate* begin() { return list_.data(); }
    CollCandidate* end() { return list_.data() + count_; }
    const CollCandidate* begin() const { return list_.data(); }
    const CollCandidate* end() const { return list_.data() + count_; }

  private:
    std::array<CollCandidate, 14> list_{};
    std::size_t count_ = 0;
};

// Everything that the operation has, possible here or not: by messages (coll_candidates.cpp), and where
// the ranks share a node segment, over it (coll_node_segment.cpp), and by reading (coll_reads.cpp).
CollCandidates candidates_of(const CollAsk& ask);
void add_in_node_segment(const CollAsk& ask, CollCandidates& list);
void add_mailbox(const CollAsk& ask, CollCandidates& list);
void add_reads(const CollAsk& ask, CollCandidates& list);

// Those of broadcasts, and a chain of `hops` in the segments with which it is fastest (coll_broadcasts.cpp).
void add_broadcasts(const CollAsk& ask, CollCandidates& list);
CollCandidate chain(const CollAsk& ask, int hops, bool combining);

// Sums over the rounds of an algorithm that doubles the distance in each.
template <class Step>
double sum_of_rounds(int ranks, Step step) {
    double time = 0;
    for (int distance = 1; distance < ranks; distance *= 2)
        time += step(distance);
    return time;
}
inline Bytes whole(Bytes bytes, std::uint64_t parts) {
    return (bytes + parts - 1) / parts;
}

// The hierarchical one, where the operation has it (coll_hierarchical.cpp).
void add_hierarchical(const CollAsk& ask, CollCandidates& list);

}  // namespace gantry::plan
