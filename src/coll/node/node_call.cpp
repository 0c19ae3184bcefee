// SPDX-License-Identifier: BSD-3-Clause
#include "coll/node/node_call.hpp"

#include "coll/node/mapped_peers.hpp"
#include "transfer/context.hpp"

namespace gantry::coll {

NodeCall::NodeCall(const Team& its_team, const plan::CallQuestion& its_question)
    : team(its_team),
      question(its_question),
      handshake(team.context->node_segment, ranks_of(team), team.rank(),
                {team.group->context, team.tag, team.phase}) {}

Task<Status> NodeCall::choose(Executor& executor) {
    using plan::Algorithm;
    // What the only one who sends says is all that is needed, unless ranks store or read.
    if (const int sender = only_sender(); sender >= 0) {
        Status posted = co_await handshake.posted(executor, sender);
        GANTRY_CO_TRY(posted);
        agreed_.emplace(ask(sender, sender + 1));
        plan_ = plan_of(team, *agreed_);
        if (!goes_over_node_segment(plan_.algorithm) || plan_.algorithm == Algorithm::cells)
            co_return success();
    }
    Status posted = co_await handshake.all_posted(executor);
    GANTRY_CO_TRY(posted);
    note_brought(team, brought_to(offers()));
    if (agreed_ && plan_.algorithm != Algorithm::reads && all_take_on_devices(offers()))
        co_return success();
    agreed_.emplace(ask(0, size()));
    plan_ = plan_of(team, *agreed_);
    co_return success();
}

Task<Result<plan::CollPlan>> NodeCall::run(Executor& executor) {
    Status opened = co_await handshake.open(executor);
    if (!opened.ok()) co_return opened;
    Result<MemoryOffer> brought = co_await bring(executor);
    // Who can offer nothing goes by messages, and so do all.
    MemoryOffer mine;
    mine.source = mine.sink = Held::other;
    if (brought.ok()) mine = *brought;
    handshake.post(mine);
    Status chosen = co_await choose(executor);
    if (!chosen.ok()) {
        handshake.fail(chosen);
        co_return chosen;
    }
    if (!goes_over_node_segment(plan_.algorithm)) co_return plan_;
    Status done = co_await act(executor, plan_);
    if (done.error_class() == MPI_ERR_UNSUPPORTED_OPERATION &&
        plan_.algorithm != plan::Algorithm::cells)
        co_return plan_of(team, agreed_->by_messages());
    if (done.ok()) done = co_await settle(executor);
    if (!done.ok()) co_return done;
    co_return plan_;
}

Task<Status> vote(Executor& executor, transfer::Handshake& handshake, int phase, Status mine) {
    if (mine.ok())
        handshake.raise(phase);
    else
        handshake.fail(mine);
    Status all = co_await handshake.all_raised(executor, phase);
    // Of its own failure a rank knows more. But that it cannot go this way is no failure, if no rank fails
    // otherwise: then all go by messages.
    const bool other = all.error_class() != MPI_ERR_UNSUPPORTED_OPERATION;
    if (!mine.ok() && !(other && mine.error_class() == MPI_ERR_UNSUPPORTED_OPERATION))
        co_return mine;
    co_return all;
}

}  // namespace gantry::coll
