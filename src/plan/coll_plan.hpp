// SPDX-License-Identifier: BSD-3-Clause
//
// How a collective operation goes: `choose_collective` is a pure function, and nothing else decides.
// Each algorithm that an operation has is a candidate with an expected time (coll_model.hpp); the
// fastest that is possible wins, unless GANTRY_COLL_<OPERATION> names one. All ranks ask the same
// question (coll_question.hpp says what may be in it) and so reach the same answer.
//
// Ranks of one node that share a node segment may have faster ways than messages, which depend on the memory
// that each of them brings. So they ask twice: if some kind of memory would go another way, the first
// answer is to meet there; the second question has what the node segment says, and its answer is final.
//
// With GANTRY_REPRODUCIBLE every reduction is (((x0 op x1) op x2) ... op xn-1), element by element,
// whatever the algorithm: only those that keep this order are possible. A candidate added for
// reductions says by `rank_order` whether it does.
#pragma once

#include "base/config.hpp"
#include "plan/coll_question.hpp"

#include <array>
#include <string>
#include <string_view>

namespace gantry::plan {

enum class Algorithm : std::uint8_t {
    automatic,  // of parameters: no algorithm is fixed
    // --- messages between ranks, any memory; one file each in coll/ ---
    dissemination,
    binomial,
    scatter_allgather,
    chain,
    recursive_doubling,
    rabenseifner,
    ring,
    recursive_halving,
    pairwise,
    bruck,
    spread,
    linear,
    fold,          // every vector to every rank that wants the result, combined there in rank order
    ordered,       // every rank combines one share of all vectors in rank order
    staged,        // spread, whose blocks of device memory go through page-locked memory
    hierarchical,  // inside nodes, then between them, each part planned for itself
    // --- inside one node, over its node segment ---
    cells,          // small host memory lies on the node segment itself
    direct,         // stores into the mapped memory of the others, one launch
    direct_shares,  // a root stores a share to each, who stores it to the others; piece by piece
    one_shot,       // each who wants a result reduces the mapped vectors of all
    two_shots,      // each reduces one share, and stores it into the results of all
    mailbox,        // small blocking calls: through numbered cells, without a handshake
    reads,          // out of the host memory of the others, which the kernel copies
};
inline constexpr int kAlgorithms = 24;
inline bool goes_over_node_segment(Algorithm algorithm) {
    return algorithm >= Algorithm::cells;
}

// What a rank may bring on the node segment itself, also in one step over a mailbox.
inline constexpr Bytes kCell = 4 * kKiB;

std::string_view name(Collective operation);
std::string_view name(Algorithm algorithm);

struct CollPlan {
    Algorithm algorithm = Algorithm::linear;
    Bytes segment = 0;    // pieces that follow each other; 0: in one piece
    int outstanding = 0;  // messages in flight at most, of algorithms that have many; 0: all
    int leaders = 0;      // ranks of a node that work between nodes, of the hierarchical one
    bool meet = false;    // not decided: the ranks meet on their node segment first, and ask again
    Nanoseconds expected = 0;
    const char* why = "";
    bool operator==(const CollPlan&) const = default;
};

// A candidate that lost.
struct CollRejected {
    Algorithm algorithm = Algorithm::automatic;
    Nanoseconds expected = 0;  // 0: not possible here
    const char* why = "";
};

struct CollChoice {
    CollPlan plan;
    std::array<CollRejected, 13> rejected{};
    int rejected_count = 0;
};

// What the user fixed. Plain data: rank 0's is the job's.
struct CollTuning {
    std::array<Algorithm, kCollectives> fixed{};  // by operation; automatic: choose
    Bytes segment = 0;                            // 0: choose
    int outstanding = 0;                          // 0: choose
    int leaders = 0;                              // 0: choose; no parameter, for who compares
    Bytes piece = 128 * kKiB;                     // of vectors that are combined as they come
    int mailbox_calls =
        8;  // small calls of a communicator before it opens a mailbox, that one included
    int mailbox_ranks = 64;           // of a communicator that has one, at most
    Bytes mailbox_bytes = 64 * kKiB;  // what one rank brings over a mailbox in one call, at most
    bool reproducible = false;
    bool node_segment = true;  // ranks of a node may meet on its node segment
    bool resident = false;     // persistent kernels take what is short
    bool devices = false;      // vectors may lie in device memory
    bool reads = false;        // ranks of a node may read each other's host memory
    Bytes reads_from = 0;      // from so many bytes on; 0: where that is expected to be faster
    bool operator==(const CollTuning&) const = default;
};
CollTuning coll_tuning_from(const config::Config& config);

CollChoice choose_collective(const CollQuestion& question, const CollFacts& facts,
                             const CollTuning& tuning);

// Whether each rank knows what every other one brings: not of the v and w forms.
bool all_know_the_bytes(Collective operation);

// The pieces in which a vector is exchanged and combined: longer ones where they are many, since a
// GPU takes a launch for each. Both sides of an exchange know the vector's bytes, and cut alike.
Bytes combined_piece(Bytes vector, const CollTuning& tuning);

// "ring in pieces of 256 KiB (long vectors: every link carries the vector twice)".
std::string describe(const CollPlan& plan);

}  // namespace gantry::plan
