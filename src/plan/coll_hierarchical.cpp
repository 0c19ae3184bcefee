// SPDX-License-Identifier: BSD-3-Clause
//
// What a hierarchical operation takes: the sum of its parts, each as it would be chosen for the ranks
// of one node, or for one rank of each node (coll/hierarchical.hpp).
#include "plan/coll_model.hpp"

#include <algorithm>

namespace gantry::plan {
namespace {

constexpr const char* kOneNode = "all ranks are on one node";
constexpr const char* kAloneOnNodes = "every rank has a node of its own";
constexpr const char* kNotInOrder = "ranks of a node do not follow each other";

double part(const CollAsk& ask, const CollFacts& facts, CollShape shape, Collective operation,
            Bytes bytes, std::uint64_t count) {
    if (shape.ranks <= 1) return 0;
    CollQuestion question = ask.question;
    question.operation = operation;
    question.bytes = bytes;
    question.count = count;
    question.shape = shape;
    question.node_segment = {};
    // Ranks of a node meet there, whose memory is known here.
    question.node_segment.there =
        shape.nodes == 1 && ask.tuning.node_segment && question.memory == CollMemory::device;
    return static_cast<double>(choose_collective(question, facts, ask.tuning).plan.expected);
}

// Of the ranks of a node.
double inside(const CollAsk& ask, Collective operation, Bytes bytes, std::uint64_t count = 0) {
    const int most = ask.question.shape.most;
    return part(ask, ask.facts, {most, 1, most, most, true}, operation, bytes, count);
}

// Of one rank of each node, while `leaders` ranks of a node do the same and share its network.
double across(const CollAsk& ask, Collective operation, Bytes bytes, std::uint64_t count = 0,
              int leaders = 1) {
    const int nodes = ask.question.shape.nodes;
    CollFacts facts = ask.facts;
    facts.between.bytes_per_second = network_rate(facts, leaders);
    return part(ask, facts, {nodes, nodes, 1, 1, true}, operation, bytes, count);
}

const char* not_possible(const CollAsk& ask) {
    if (ask.question.shape.nodes <= 1) return kOneNode;
    if (ask.question.shape.most <= 1) return kAloneOnNodes;
    return nullptr;
}

// A vector whole through one rank of each node, or in shares through several.
CollCandidate reduction(const CollAsk& ask) {
    const CollQuestion& question = ask.question;
    const bool to_all = question.operation == Collective::allreduce;
    const Bytes n = ask.bytes;
    const std::uint64_t count = question.count;
    CollCandidate leader{.algorithm = Algorithm::hierarchical,
                         .why = "a node's ranks reduce, then one rank of each node",
                         .impossible = not_possible(ask),
                         .leaders = 1};
    if (leader.impossible == nullptr && !question.commutative && !question.shape.in_order)
        leader.impossible = kNotInOrder;
    if (leader.impossible != nullptr) return leader;
    leader.time = inside(ask, Collective::reduce, n, count) +
                  across(ask, question.operation, n, count) +
                  (to_all ? inside(ask, Collective::bcast, n) : 0);
    const int fixed = ask.tuning.leaders;
    const int leaders = fixed > 0 ? std::min(fixed, question.shape.fewest) : question.shape.fewest;
    if (leaders <= 1 || count < static_cast<std::uint64_t>(leaders)) return leader;
    const auto each = static_cast<Bytes>(leaders);
    CollCandidate shared = leader;
    shared.why = "a node's ranks reduce a share each, then those of each share";
    shared.leaders = leaders;
    const Bytes back = to_all ? n : n / each;
    shared.time = inside(ask, Collective::reduce_scatter, n, count) +
                  across(ask, question.operation, n / each, count / each, leaders) +
                  inside(ask, to_all ? Collective::allgatherv : Collective::gather, back);
    return fixed > 0 || shared.time < leader.time ? shared : leader;
}

}  // namespace

void add_hierarchical(const CollAsk& ask, CollCandidates& list) {
    CollCandidate candidate{.algorithm = Algorithm::hierarchical,
                            .why = "inside nodes, and one rank of each between them",
                            .impossible = not_possible(ask),
                            .leaders = 1};
    const bool possible = candidate.impossible == nullptr;
    switch (ask.question.operation) {
        case Collective::barrier:
            if (possible)
                candidate.time =
                    2 * inside(ask, Collective::barrier, 0) + across(ask, Collective::barrier, 0);
            break;
        case Collective::bcast:
            if (possible)
                candidate.time = across(ask, Collective::bcast, ask.bytes) +
                                 inside(ask, Collective::bcast, ask.bytes);
            break;
        case Collective::allgather:
            if (possible && !ask.question.shape.in_order) candidate.impossible = kNotInOrder;
            if (possible)
                candidate.time =
                    inside(ask, Collective::gather, ask.bytes) +
                    across(ask, Collective::allgather,
                           ask.bytes * static_cast<Bytes>(ask.question.shape.most)) +
                    inside(ask, Collective::bcast, ask.bytes * static_cast<Bytes>(ask.ranks));
            break;
        case Collective::reduce:
        case Collective::allreduce: candidate = reduction(ask); break;
        default: return;
    }
    list.add(candidate);
}

}  // namespace gantry::plan
