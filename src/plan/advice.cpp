// SPDX-License-Identifier: BSD-3-Clause
#include "plan/advice.hpp"

#include "plan/ipc_candidate.hpp"

#include <algorithm>

namespace gantry::plan {
namespace {

bool is_ipc_by(const Plan& plan, Executor executor) {
    return plan.protocol == Protocol::ipc && plan.executor == executor;
}

// The answer to the same question with other facts.
template <class Change>
Plan plan_if(const Ask& ask, Change change) {
    Question question = ask.question;
    Facts facts = ask.facts;
    change(question, facts);
    return best_of(Ask(question, facts, ask.machine, ask.tuning)).plan;
}

// On a GPU that neither end used lately: what it would save if this process were its last user.
void advise_on_time_slice(const Ask& ask, const Plan& best, Advice& advice) {
    Question question = ask.question;
    question.already_staged = false;
    question.started_chunk = 0;
    Facts facts = ask.facts;
    facts.last_user = GpuUser::receiver;
    const Ask taken(question, facts, ask.machine, ask.tuning);
    const Plan with_it = best_of(taken).plan;
    int asks_again_at = pays_at(taken, Executor::receiver, best.expected);
    if (is_ipc_by(with_it, Executor::receiver) && with_it.expected < best.expected) {
        advice.saved_by_time_slice = best.expected - with_it.expected;
        // With each message the mapping that is to be opened costs less.
        if (!facts.ipc_open) asks_again_at = facts.uses + 1 + facts.uses / 8;
    }
    advice.source_pays_at = std::min(advice.source_pays_at, asks_again_at);
}

}  // namespace

Advice advice_for(const Ask& ask, const Plan& chosen) {
    Advice advice;
    const auto as_sent = [](Question& question, Facts&) {
        question.already_staged = false;
        question.started_chunk = 0;
    };
    // What would be best, wherever the bytes lie by now.
    const Plan best = ask.question.already_staged ? plan_if(ask, as_sent) : chosen;
    advice.direct_next = best.protocol == Protocol::ipc;
    if (best.protocol == Protocol::ipc)
        advice.opens =
            best.executor == Executor::receiver ? !ask.facts.ipc_open : !ask.facts.put_open;
    if (is_ipc_by(chosen, Executor::receiver) && !ask.is_time_sliced()) {
        const Plan with_rtr =
            plan_if(ask, [](Question&, Facts& facts) { facts.rtr = facts.put_open = true; });
        advice.rtr_pays = is_ipc_by(with_rtr, Executor::sender);
    }
    if (best.protocol == Protocol::ipc) {
        // What a get takes longer alone counts against puts after an RTR only (ipc_candidate.cpp).
        const Nanoseconds alone = ask.facts.rtr ? 0 : ask.sink_gpu.peer_get_more;
        // Pending work does not count when one of the two is preferred, either.
        Facts facts = ask.facts;
        facts.sender_busy = facts.receiver_busy = false;
        const Ask idle(ask.question, facts, ask.machine, ask.tuning);
        if (best.executor == Executor::receiver)
            advice.sink_pays_at = pays_at(idle, Executor::sender, best.expected - alone);
        else
            advice.source_pays_at = pays_at(idle, Executor::receiver, best.expected + alone);
        return advice;
    }
    advice.source_pays_at = pays_at(ask, Executor::receiver, best.expected);
    advice.sink_pays_at = pays_at(ask, Executor::sender, best.expected);
    if (!ask.facts.descriptor) {
        Question question = ask.question;
        Facts facts = ask.facts;
        as_sent(question, facts);
        facts.descriptor = true;
        const Ask with_it(question, facts, ask.machine, ask.tuning);
        // It is for the next message, for which this one counts.
        ++facts.uses;
        const Ask next(question, facts, ask.machine, ask.tuning);
        advice.wants_descriptor = is_ipc_by(best_of(next).plan, Executor::receiver);
        if (!advice.wants_descriptor)
            advice.source_pays_at = std::max(
                pays_at(with_it, Executor::receiver, best.expected) - 1, ask.facts.uses + 1);
    }
    if (ask.is_time_sliced() && ask.facts.last_user == GpuUser::unknown)
        advise_on_time_slice(ask, best, advice);
    return advice;
}

}  // namespace gantry::plan
