// SPDX-License-Identifier: BSD-3-Clause
//
// The point-to-point planner: one candidate per protocol, each either impossible (with a clause
// that says why) or priced by the model; the cheapest wins, ties go to the protocol with the
// smaller number. Some answers are settled without a price: a message to oneself; a host message
// within GANTRY_EAGER_LIMIT, which the limit promises to send at once; CUDA IPC from a
// GANTRY_IPC_THRESHOLD up that the user set; a message that lies in slots already.
//
// While the sink is unknown (the sender's offer) a device source expects a device sink like itself,
// a host source a host sink.
#include "plan/advice.hpp"
#include "plan/ask.hpp"
#include "plan/cma_candidate.hpp"
#include "plan/direct_copy.hpp"
#include "plan/eager_candidate.hpp"
#include "plan/ipc_candidate.hpp"
#include "plan/looks.hpp"
#include "plan/p2p_model.hpp"
#include "plan/pipeline_candidate.hpp"
#include "plan/rdma_candidate.hpp"

#include <span>

namespace gantry::plan {
namespace {

Candidate self_candidate(const Ask& ask) {
    if (!ask.peer.self) return impossible(Protocol::self, "the peer is another process");
    DirectCopy copy = direct_copy(ask, ask.source_gpu.uuid == ask.sink_gpu.uuid, Executor::sender);
    if (ask.bytes == 0) copy = {0, kHostCopyRate, CopyEngine::cpu};
    const Nanoseconds once = copy.latency + transfer_time(ask.bytes, copy.bytes_per_second);
    // From blocks to blocks there is no single copy: what is packed lies aside meanwhile.
    const bool packed_aside = !ask.source.contiguous && !ask.sink.contiguous;
    Candidate candidate;
    candidate.plan = {.protocol = Protocol::self,
                      .executor = Executor::receiver,
                      .source_engine = copy.engine,
                      .sink_engine = copy.engine,
                      .sink_stage = packed_aside ? Stage::slot : Stage::direct,
                      .expected = packed_aside ? 2 * once : once,
                      .why = packed_aside ? "both buffers are in this process, in blocks"
                                          : "both buffers are in this process: one local copy"};
    candidate.settled = true;
    return candidate;
}

// Of two copies and one, what `taken` is not; null: it is neither, or the other cannot be.
Candidate* other_way(std::span<Candidate> candidates, const Candidate& taken) {
    Candidate* other = nullptr;
    for (Candidate& candidate : candidates)
        if (candidate.impossible == nullptr &&
            are_alternatives(taken.plan.protocol, candidate.plan.protocol) &&
            (other == nullptr || candidate.plan.expected < other->plan.expected))
            other = &candidate;
    return other;
}

}  // namespace

Choice best_of(const Ask& ask) {
    Candidate candidates[] = {self_candidate(ask), eager_candidate(ask),    rdma_candidate(ask),
                              ipc_candidate(ask),  pipeline_candidate(ask), cma_candidate(ask)};
    // Its sender may be done, and its buffer hold something else.
    if (ask.question.already_staged)
        for (Candidate& candidate : candidates)
            if (candidate.plan.protocol != Protocol::pipeline &&
                (candidate.plan.protocol != Protocol::ipc || !ask.facts.kept_away))
                candidate = impossible(candidate.plan.protocol, "it lies in the sender's slots");
    Candidate* best = nullptr;
    for (Candidate& candidate : candidates) {
        if (candidate.impossible != nullptr) continue;
        if (best == nullptr || (candidate.settled && !best->settled) ||
            (candidate.settled == best->settled && candidate.plan.expected < best->plan.expected))
            best = &candidate;
    }
    GANTRY_ASSERT(best != nullptr && "every peer can be reached by active messages at least");
    Candidate* const slower =
        ask.facts.reads == Reads::look ? other_way(candidates, *best) : nullptr;
    if (slower != nullptr) {
        slower->plan.why = "now and then, to see what this way takes by now";
        best->lost = "taken by other messages";
        best = slower;
    }

    Choice choice;
    choice.plan = best->plan;
    choice.measures = slower != nullptr ||
                      (ask.facts.reads == Reads::trial && choice.plan.protocol == Protocol::cma);
    for (const Candidate& candidate : candidates) {
        if (&candidate == best) continue;
        const bool priced = candidate.impossible == nullptr;
        choice.rejected[choice.rejected_count++] = {candidate.plan.protocol,
                                                    priced ? candidate.plan.expected : 0,
                                                    priced ? candidate.lost : candidate.impossible};
    }
    return choice;
}

Choice choose(const Question& question, const Facts& facts, const Machine& machine,
              const Tuning& tuning) {
    const Ask ask(question, facts, machine, tuning);
    Choice choice = best_of(ask);
    const bool may_be_direct = question.sink_known && ask.peer.shared_memory && tuning.ipc &&
                               (by_copy_engine(ask.source) || by_copy_engine(ask.sink));
    if (may_be_direct) choice.advice = advice_for(ask, choice.plan);
    return choice;
}

}  // namespace gantry::plan
