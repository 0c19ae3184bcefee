// SPDX-License-Identifier: BSD-3-Clause
#include "plan/coll_plan.hpp"

#include "plan/coll_model.hpp"
#include "plan/plan.hpp"
#include "plan/text.hpp"

#include <fmt/format.h>

namespace gantry::plan {
namespace {

constexpr std::array<std::string_view, kCollectives> kOperations = {
    "barrier",   "bcast",      "reduce",   "allreduce", "reduce_scatter",
    "allgather", "allgatherv", "alltoall", "alltoallv", "gather",
    "gatherv",   "scatter",    "scatterv", "scan",      "neighbor",
};
constexpr std::array<std::string_view, kAlgorithms> kNames = {
    "auto",
    "dissemination",
    "binomial",
    "scatter_allgather",
    "chain",
    "recursive_doubling",
    "rabenseifner",
    "ring",
    "recursive_halving",
    "pairwise",
    "bruck",
    "spread",
    "linear",
    "fold",
    "ordered",
    "staged",
    "hierarchical",
    "cells",
    "direct",
    "direct_shares",
    "one_shot",
    "two_shots",
    "mailbox",
    "reads",
};

// base/params.def has refused other words already.
Algorithm algorithm_named(std::string_view word) {
    for (std::size_t i = 0; i < kNames.size(); ++i)
        if (kNames[i] == word) return static_cast<Algorithm>(i);
    return Algorithm::automatic;
}

constexpr const char* kOtherOrder = "combines in another order, which GANTRY_REPRODUCIBLE forbids";

// Why it cannot be, here; null: it can.
const char* obstacle(const CollCandidate& candidate, const CollAsk& ask) {
    if (candidate.impossible != nullptr) return candidate.impossible;
    switch (ask.question.operation) {
        case Collective::reduce:
        case Collective::allreduce:
        case Collective::reduce_scatter:
        case Collective::scan:
            return ask.tuning.reproducible && !candidate.rank_order ? kOtherOrder : nullptr;
        default: return nullptr;
    }
}

Nanoseconds rounded(double time) {
    return static_cast<Nanoseconds>(time) + 1;  // 0 says that it cannot be
}

}  // namespace

std::string_view name(Collective operation) {
    return kOperations[static_cast<std::size_t>(operation)];
}

std::string_view name(Algorithm algorithm) {
    return kNames[static_cast<std::size_t>(algorithm)];
}

CollTuning coll_tuning_from(const config::Config& config) {
    CollTuning tuning;
    const auto fix = [&](Collective operation, std::string_view word) {
        tuning.fixed[static_cast<std::size_t>(operation)] = algorithm_named(word);
    };
    fix(Collective::barrier, config.coll_barrier);
    fix(Collective::bcast, config.coll_bcast);
    fix(Collective::reduce, config.coll_reduce);
    fix(Collective::allreduce, config.coll_allreduce);
    fix(Collective::reduce_scatter, config.coll_reduce_scatter);
    fix(Collective::allgather, config.coll_allgather);
    fix(Collective::allgatherv, config.coll_allgatherv);
    fix(Collective::alltoall, config.coll_alltoall);
    fix(Collective::alltoallv, config.coll_alltoallv);
    fix(Collective::gather, config.coll_gather);
    fix(Collective::scatter, config.coll_scatter);
    fix(Collective::scan, config.coll_scan);
    fix(Collective::neighbor, config.coll_neighbor);
    tuning.segment = config.coll_segment;
    tuning.outstanding = static_cast<int>(config.coll_outstanding);
    tuning.piece = config.coll_piece;
    tuning.mailbox_calls = static_cast<int>(config.coll_mailbox_calls);
    tuning.mailbox_ranks = static_cast<int>(config.coll_mailbox_ranks);
    tuning.mailbox_bytes = config.coll_mailbox_bytes;
    tuning.reproducible = config.reproducible;
    tuning.devices = config.cuda;
    tuning.resident = config.kernels && config.idle_timeout > 0;
    if (Result<Mechanisms> mechanisms = mechanisms_from(config.mechanisms); mechanisms.ok()) {
        tuning.node_segment = mechanisms->node_segment;
        tuning.reads = mechanisms->cma;
    }
    tuning.reads_from = config.cma_threshold;
    return tuning;
}

Bytes combined_piece(Bytes vector, const CollTuning& tuning) {
    constexpr Bytes kMany = 4;
    return vector < kMany * tuning.piece ? tuning.piece : kMany * tuning.piece;
}

namespace {

// What the ranks have measured of messages in their node takes the place of what was expected.
CollFacts as_measured(const CollQuestion& question, CollFacts facts) {
    const HostRates& rates = question.node_segment.rates;
    if (rates.slots != 0)
        facts.inside.bytes_per_second =
            std::max(rates.slot_bytes_per_second(), rates.read_bytes_per_second());
    return facts;
}

CollChoice best_of(const CollQuestion& question, const CollFacts& described,
                   const CollTuning& tuning) {
    const CollFacts facts = as_measured(question, described);
    const CollAsk ask(question, facts, tuning);
    const CollCandidates candidates = candidates_of(ask);
    const Algorithm fixed = tuning.fixed[static_cast<std::size_t>(question.operation)];
    const CollCandidate* best = nullptr;
    for (const CollCandidate& candidate : candidates) {
        if (obstacle(candidate, ask) != nullptr) continue;
        if (best == nullptr || candidate.time < best->time) best = &candidate;
    }
    GANTRY_ASSERT(best != nullptr);
    bool as_fixed = false;
    for (const CollCandidate& candidate : candidates) {
        if (candidate.algorithm != fixed || obstacle(candidate, ask) != nullptr) continue;
        best = &candidate;
        as_fixed = true;
    }
    CollChoice choice;
    choice.plan = {.algorithm = best->algorithm,
                   .segment = best->segment,
                   .outstanding = best->outstanding,
                   .leaders = best->leaders,
                   .expected = rounded(best->time),
                   .why = as_fixed ? "fixed by a parameter" : best->why};
    for (const CollCandidate& candidate : candidates) {
        if (&candidate == best) continue;
        const char* why = obstacle(candidate, ask);
        const Nanoseconds expected = why != nullptr ? 0 : rounded(candidate.time);
        if (why == nullptr) why = as_fixed ? "another one is fixed" : "slower";
        choice.rejected[static_cast<std::size_t>(choice.rejected_count++)] = {candidate.algorithm,
                                                                              expected, why};
    }
    return choice;
}

}  // namespace

CollChoice choose_collective(const CollQuestion& question, const CollFacts& facts,
                             const CollTuning& tuning) {
    CollChoice choice = best_of(question, facts, tuning);
    if (!question.node_segment.there || question.memory != CollMemory::unknown) return choice;
    if (choice.plan.algorithm == Algorithm::mailbox) return choice;
    // What some kind of memory would take: another way than the one by messages is worth a handshake.
    const auto goes_another_way = [&](CollMemory memory) {
        CollQuestion met = question;
        met.memory = memory;
        return best_of(met, facts, tuning).plan.algorithm != choice.plan.algorithm;
    };
    choice.plan.meet = goes_another_way(CollMemory::cells) || goes_another_way(CollMemory::host) ||
                       goes_another_way(CollMemory::own_device) ||
                       goes_another_way(CollMemory::device);
    return choice;
}

std::string describe(const CollPlan& plan) {
    std::string text(name(plan.algorithm));
    if (plan.segment != 0) text += fmt::format(" in pieces of {}", bytes_text(plan.segment));
    if (plan.outstanding != 0) text += fmt::format(", {} messages at once", plan.outstanding);
    if (plan.leaders > 1)
        text += fmt::format(", {} ranks of each node between nodes", plan.leaders);
    if (plan.why[0] != 0) text += fmt::format(" ({})", plan.why);
    return text;
}

}  // namespace gantry::plan
