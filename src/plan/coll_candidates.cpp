// SPDX-License-Identifier: BSD-3-Clause
//
// The algorithms that each operation has, with their expected times. The heads of coll/*.cpp draw
// their steps; here they are sums.
#include "plan/coll_model.hpp"

#include <algorithm>

namespace gantry::plan {
namespace {

constexpr const char* kOrderMatters = "the operation does not commute";
constexpr const char* kNotPowerOfTwo = "the number of ranks is no power of two";
constexpr const char* kTooFewElements = "fewer elements than ranks";
constexpr const char* kInPlace = "in place, blocks are swapped pair by pair";

// Blocks of device memory that are copied to page-locked memory together.
constexpr Bytes kSmallestStage = 16 * kKiB, kLargestStage = 256 * kKiB, kUsualStage = 64 * kKiB;

// The halving rounds of a vector among a power of two of ranks: half of it first, with the rank half
// way around.
double halving(const CollAsk& ask, int ranks, double combined) {
    double time = 0;
    Bytes part = ask.bytes;
    for (int distance = ranks / 2; distance >= 1; distance /= 2) {
        part = whole(part, 2);
        time += ask.swap(part, distance) + combined * ask.combine(part);
    }
    return time;
}

// What ranks beyond a power of two add: their vectors go to a neighbour, and results come back.
double folded(const CollAsk& ask, Bytes back) {
    if (ask.power_of_two()) return 0;
    return ask.one_way(ask.bytes, 1) + ask.combine(ask.bytes) + ask.one_way(back, 1);
}

double ring(const CollAsk& ask, Bytes each) {
    return (ask.ranks - 1) * ask.shift(each, 1);
}

// Those of all others, one after the other.
double combined_shares(const CollAsk& ask) {
    return (ask.ranks - 1) * ask.combine(ask.share());
}

double pairwise_reduction(const CollAsk& ask) {
    return (ask.ranks - 1) * ask.shift(ask.share(), ask.ranks / 2) + combined_shares(ask);
}

// Everybody's shares at once, combined one after the other when all are there.
double ordered_reduction(const CollAsk& ask) {
    // A launch for each on a GPU; a processor takes them from memory, where others come piece by piece.
    return ask.to_all(ask.share()) +
           (ask.on_device() ? combined_shares(ask) : ask.combine(ask.bytes));
}

double combining_tree(const CollAsk& ask) {
    return sum_of_rounds(ask.ranks, [&](int distance) {
        return ask.one_way(ask.bytes, distance) + ask.combine(ask.bytes);
    });
}

void barrier(const CollAsk& ask, CollCandidates& list) {
    list.add({.algorithm = Algorithm::dissemination,
              .time = sum_of_rounds(ask.ranks, [&](int d) { return ask.shift(0, d); }),
              .why = "a message in each round"});
}

void in_rank_order(CollCandidates& list, double fold, double ordered) {
    list.add({.algorithm = Algorithm::fold,
              .time = fold,
              .why = "short, in rank order: every vector at once",
              .rank_order = true});
    list.add({.algorithm = Algorithm::ordered,
              .time = ordered,
              .why = "long, in rank order: a share to each rank",
              .rank_order = true});
}

const char* not_in_shares(const CollAsk& ask) {
    return ask.question.count < static_cast<std::uint64_t>(ask.ranks) ? kTooFewElements : nullptr;
}
const char* not_in_any_order(const CollAsk& ask) {
    return ask.question.commutative ? not_in_shares(ask) : kOrderMatters;
}

void reduce(const CollAsk& ask, CollCandidates& list) {
    const double to_root = ask.at_root(ask.share());
    const double moved = ask.question.commutative ? 0 : ask.one_way(ask.bytes, ask.ranks / 2);
    list.add({.algorithm = Algorithm::binomial,
              .time = combining_tree(ask) + moved,
              .why = "the fewest steps"});
    const int power = ask.lower_power_of_two();
    list.add({.algorithm = Algorithm::rabenseifner,
              .time = folded(ask, 0) + ask.copy(ask.bytes) + halving(ask, power, 1) + to_root,
              .why = "long: every rank combines a share",
              .impossible = not_in_any_order(ask)});
    list.add({.algorithm = Algorithm::pairwise,
              .time = pairwise_reduction(ask) + to_root,
              .why = "long: every rank combines a share, in rank order",
              .impossible = not_in_shares(ask)});
    in_rank_order(list, ask.at_root(ask.bytes) + (ask.ranks - 1) * ask.combine(ask.bytes),
                  ordered_reduction(ask) + to_root);
}

void allreduce(const CollAsk& ask, CollCandidates& list) {
    const int power = ask.lower_power_of_two();
    const Bytes bytes = ask.bytes;
    list.add({.algorithm = Algorithm::recursive_doubling,
              .time = folded(ask, bytes) + sum_of_rounds(power,
                                                         [&](int distance) {
                                                             return ask.swap(bytes, distance) +
                                                                    ask.combine(bytes);
                                                         }),
              .why = "the fewest steps"});
    list.add({.algorithm = Algorithm::rabenseifner,
              .time = folded(ask, bytes) + halving(ask, power, 1) + halving(ask, power, 0),
              .why = "every rank combines a share, in few steps",
              .impossible = not_in_any_order(ask)});
    list.add({.algorithm = Algorithm::ring,
              .time = 2 * ring(ask, ask.share()) +
                      (ask.on_device() ? combined_shares(ask) : ask.combine(bytes)),
              .why = "long: every link carries the vector twice",
              .impossible = not_in_any_order(ask)});
    list.add({.algorithm = Algorithm::pairwise,
              .time = pairwise_reduction(ask) + ring(ask, ask.share()),
              .why = "long: every rank combines a share, in rank order",
              .impossible = not_in_shares(ask)});
    in_rank_order(list, ask.to_all(bytes) + (ask.ranks - 1) * ask.combine(bytes),
                  ordered_reduction(ask) + ring(ask, ask.share()));
}

void reduce_scatter(const CollAsk& ask, CollCandidates& list) {
    list.add({.algorithm = Algorithm::recursive_halving,
              .time = ask.copy(ask.bytes) + folded(ask, ask.share()) +
                      halving(ask, ask.lower_power_of_two(), 1),
              .why = "few steps, and every rank combines a share",
              .impossible = ask.question.commutative ? nullptr : kOrderMatters});
    list.add({.algorithm = Algorithm::pairwise,
              .time = pairwise_reduction(ask),
              .why = "long: nothing is sent but to where it is combined"});
    list.add({.algorithm = Algorithm::binomial,
              .time = combining_tree(ask) + ask.at_root(ask.share()),
              .why = "short: combined at one rank"});
    list.add({.algorithm = Algorithm::ordered,
              .time = ordered_reduction(ask),
              .why = "in rank order: everybody's share at once",
              .rank_order = true});
}

void allgather(const CollAsk& ask, CollCandidates& list) {
    double doubling = 0, bruck = 0;
    for (int distance = 1; distance < ask.ranks; distance *= 2) {
        const auto blocks = static_cast<Bytes>(std::min(distance, ask.ranks - distance));
        doubling += ask.swap(ask.bytes * blocks, distance);
        bruck += ask.shift(ask.bytes * blocks, distance);
    }
    const double own = ask.own_block(ask.bytes);
    list.add({.algorithm = Algorithm::recursive_doubling,
              .time = own + doubling,
              .why = "the fewest steps",
              .impossible = ask.power_of_two() ? nullptr : kNotPowerOfTwo});
    list.add({.algorithm = Algorithm::bruck,
              .time = bruck + ask.copy(ask.bytes * static_cast<Bytes>(ask.ranks)),
              .why = "the fewest steps, for any number of ranks"});
    list.add({.algorithm = Algorithm::ring,
              .time = own + ring(ask, ask.bytes),
              .why = "long: blocks go from neighbour to neighbour"});
    list.add({.algorithm = Algorithm::spread,
              .time = own + ask.to_all(ask.bytes),
              .why = "everybody tells everybody at once"});
}

void allgatherv(const CollAsk& ask, CollCandidates& list) {
    const double own = ask.own_block(ask.share());
    list.add({.algorithm = Algorithm::ring,
              .time = own + ring(ask, ask.share()),
              .why = "long: blocks go from neighbour to neighbour"});
    list.add({.algorithm = Algorithm::spread,
              .time = own + ask.to_all(ask.share()),
              .why = "everybody tells everybody at once"});
}

// Blocks of device memory that go to other nodes are copied to page-locked memory, small ones together,
// while those before them are sent. A rank without device memory does what `spread` does, so where no
// rank knows of the others' memory, this is that one with nothing lost: it stands before it.
CollCandidate staged(const CollAsk& ask, int outstanding) {
    const CollGpu& gpu = ask.facts.gpu;
    CollCandidate way{.algorithm = Algorithm::staged,
                      .time = ask.to_all(ask.bytes),
                      .why = "everybody tells everybody; what is in device memory is staged",
                      .segment = ask.tuning.segment,
                      .outstanding = outstanding};
    // The copies are for nothing where the network reaches device memory.
    if (ask.facts.network_reaches_devices) way.time += ask.staging(ask.bytes, ask.bytes);
    if (ask.question.shape.nodes <= 1)
        way.impossible = "all ranks are on one node";
    else if (ask.question.in_place)
        way.impossible = kInPlace;
    // Of listed blocks each rank knows its own alone.
    if (way.segment == 0 && ask.question.operation == Collective::alltoallv)
        way.segment = kUsualStage;
    // The first copy ends before anything is sent, and the last one begins when all has come; a copy
    // more costs its calls.
    if (way.segment == 0 && way.impossible == nullptr) {
        const Bytes all = ask.bytes * static_cast<Bytes>(ask.ranks - ask.question.shape.most);
        double best = 0;
        for (Bytes unit = kSmallestStage; unit <= kLargestStage; unit *= 2) {
            const double each = static_cast<double>(gpu.out) +
                                static_cast<double>(unit) * 1e9 / gpu.host_bytes_per_second;
            const double time =
                static_cast<double>(all / unit) * static_cast<double>(gpu.further) + 2 * each;
            if (way.segment == 0 || time < best) best = time, way.segment = unit;
        }
    }
    return way;
}

// One partner after the other, ever further away around the ranks: those of one node are among the first and
// the last, and may take longer. Ranks do not go in step, so none takes less.
double all_partners(const CollAsk& ask, Bytes each) {
    const int half = ask.ranks / 2, near = std::min(ask.question.shape.most - 1, half);
    const double far = ask.shift(each, half);
    double time = (ask.ranks - 1) * far;
    for (int distance = 1; distance <= near; ++distance)
        time +=
            (2 * distance == ask.ranks ? 1 : 2) * std::max(ask.shift(each, distance) - far, 0.0);
    return time;
}

void alltoall(const CollAsk& ask, CollCandidates& list) {
    const bool equal = ask.question.operation == Collective::alltoall;
    const char* impossible = ask.question.in_place ? kInPlace : nullptr;
    const double own = ask.question.in_place ? 0 : ask.own_block(ask.bytes);
    if (equal) {
        const Bytes half = ask.bytes * static_cast<Bytes>(ask.ranks / 2);
        list.add({.algorithm = Algorithm::bruck,
                  .time = sum_of_rounds(ask.ranks,
                                        [&](int distance) {
                                            return ask.shift(half, distance) + 2 * ask.copy(half);
                                        }) +
                          2 * ask.copy(2 * half),
                  .why = "short: blocks travel together in few steps",
                  .impossible = impossible});
    }
    list.add({.algorithm = Algorithm::pairwise,
              .time = own + all_partners(ask, ask.bytes),
              .why = "one partner after the other"});
    constexpr int kOutstanding = 32;
    list.add(staged(ask, ask.tuning.outstanding != 0 ? ask.tuning.outstanding : kOutstanding));
    list.add({.algorithm = Algorithm::spread,
              .time = own + ask.to_all(ask.bytes),
              .why = "everybody tells everybody at once",
              .impossible = impossible,
              .outstanding = ask.tuning.outstanding != 0 ? ask.tuning.outstanding : kOutstanding});
}

void rooted(const CollAsk& ask, CollCandidates& list) {
    const Collective operation = ask.question.operation;
    if (operation == Collective::gather || operation == Collective::scatter)
        list.add({.algorithm = Algorithm::binomial,
                  .time = sum_of_rounds(ask.ranks,
                                        [&](int distance) {
                                            const auto blocks = static_cast<Bytes>(
                                                std::min(distance, ask.ranks - distance));
                                            return ask.one_way(ask.bytes * blocks, distance) +
                                                   ask.copy(ask.bytes * blocks);
                                        }),
                  .why = "short: blocks travel together in few steps"});
    list.add({.algorithm = Algorithm::linear,
              .time = ask.own_block(ask.bytes) + ask.at_root(ask.bytes),
              .why = "every block goes straight between the root and its rank"});
}

void scan(const CollAsk& ask, CollCandidates& list) {
    list.add({.algorithm = Algorithm::recursive_doubling,
              .time = sum_of_rounds(ask.ranks,
                                    [&](int distance) {
                                        return ask.shift(ask.bytes, distance) +
                                               2 * ask.combine(ask.bytes);
                                    }),
              .why = "the fewest steps"});
    list.add(chain(ask, ask.ranks - 1, true));
}

// A rank knows its own blocks alone, so this is about those that it brings.
void neighbor(const CollAsk& ask, CollCandidates& list) {
    list.add({.algorithm = Algorithm::spread,
              .time = ask.to_neighbors(ask.bytes),
              .why = "a message for each block, all at once"});
}

}  // namespace

namespace {

CollCandidates by_messages(const CollAsk& ask) {
    CollCandidates list;
    switch (ask.question.operation) {
        case Collective::barrier: barrier(ask, list); break;
        case Collective::bcast: add_broadcasts(ask, list); break;
        case Collective::reduce: reduce(ask, list); break;
        case Collective::allreduce: allreduce(ask, list); break;
        case Collective::reduce_scatter: reduce_scatter(ask, list); break;
        case Collective::allgather: allgather(ask, list); break;
        case Collective::allgatherv: allgatherv(ask, list); break;
        case Collective::alltoall:
        case Collective::alltoallv: alltoall(ask, list); break;
        case Collective::gather:
        case Collective::gatherv:
        case Collective::scatter:
        case Collective::scatterv: rooted(ask, list); break;
        case Collective::scan: scan(ask, list); break;
        case Collective::neighbor: neighbor(ask, list); break;
    }
    return list;
}

// Copies of such vectors, of the rate at which page-locked memory is copied.
constexpr double kShortCopies = 0.22;

// Short vectors of device memory that go between nodes are reduced by the processor (plan/reduce_place.hpp):
// one copy out of the GPU and one into it, where kernels would take a launch in each step.
void reduce_on_host_where_faster(const CollAsk& ask, CollCandidates& list) {
    CollQuestion question = ask.question;
    question.memory = CollMemory::unknown;
    const CollCandidates on_host = by_messages(CollAsk(question, ask.facts, ask.tuning));
    const CollGpu& gpu = ask.facts.gpu;
    const double copies =
        static_cast<double>(gpu.to_cell + gpu.from_cell) +
        2 * static_cast<double>(ask.bytes) * 1e9 / (kShortCopies * gpu.host_bytes_per_second);
    const CollCandidate* other = on_host.begin();
    for (CollCandidate& each : list) {
        each.time = std::min(each.time, (other++)->time + copies);
    }
}

bool is_reduction(Collective operation) {
    return operation == Collective::reduce || operation == Collective::allreduce ||
           operation == Collective::reduce_scatter || operation == Collective::scan;
}

}  // namespace

CollCandidates candidates_of(const CollAsk& ask) {
    CollCandidates list = by_messages(ask);
    if (ask.question.memory == CollMemory::device && ask.question.shape.nodes > 1 &&
        is_reduction(ask.question.operation))
        reduce_on_host_where_faster(ask, list);
    add_hierarchical(ask, list);
    if (ask.question.node_segment.there && ask.question.memory != CollMemory::other)
        add_in_node_segment(ask, list);
    const bool reads = ask.question.operation != Collective::barrier &&
                       ask.question.operation != Collective::neighbor;
    if (reads && ask.question.node_segment.there) add_reads(ask, list);
    if (ask.question.node_segment.mailbox) add_mailbox(ask, list);
    return list;
}

}  // namespace gantry::plan
