// SPDX-License-Identifier: BSD-3-Clause
//
// NodeCall: one call of a collective by ranks of one node, without messages. They
//
//   meet     on the node segment (transfer/node_segment.hpp)
//   offer    what each brings: a MemoryOffer, and what lies in its cell
//   choose   the plan that follows from the call and the offers, which all read alike (agreed.hpp)
//   act      as that plan says, in phases
//   vote     at the end of each phase: all hear how it has ended
//
// or all go by messages: where the plan says so, or some rank could not act (it cannot map the memory of another
// one, for example) and votes MPI_ERR_UNSUPPORTED_OPERATION, before which nothing has been overwritten.
//
// Nobody leaves while another rank may still store into its memory or read it: a vote ends when each rank has
// raised its phase, has failed or is lost.
#pragma once

#include "base/task.hpp"
#include "coll/node/agreed.hpp"
#include "coll/node/memory_offer.hpp"
#include "coll/planner.hpp"
#include "coll/team.hpp"

#include <optional>

namespace gantry::coll {

class NodeCall {
  public:
    NodeCall(const Team& its_team, const plan::CallQuestion& its_question);
    NodeCall(const NodeCall&) = delete;
    NodeCall& operator=(const NodeCall&) = delete;

    const Team team;
    const plan::CallQuestion question;
    transfer::Handshake handshake;

    int me() const { return handshake.me(); }
    int size() const { return handshake.size(); }
    Offers offers() const { return Offers(handshake); }
    const MemoryOffer& offer(int member) const { return offers()[member]; }

    // How the ranks have gone: all have the same plan. One of the node segment (goes_over_node_segment) is done; with any other
    // one nothing has happened on any rank, and the call shall go by messages.
    Task<Result<plan::CollPlan>> run(Executor& executor);

  protected:
    ~NodeCall() = default;
    virtual Task<Result<MemoryOffer>> bring(Executor& executor) = 0;
    // Of what members [first, end) offer. Where these are not all, they are the only sender.
    virtual AgreedQuestion ask(int first, int end) const = 0;
    virtual int only_sender() const { return -1; }
    // This rank's part, to the last vote; of a plan in cells nobody votes.
    virtual Task<Status> act(Executor& executor, plan::CollPlan plan) = 0;
    // What is left to this rank alone, when all have acted.
    virtual Task<Status> settle(Executor&) { co_return success(); }

  private:
    Task<Status> choose(Executor& executor);
    std::optional<AgreedQuestion> agreed_;
    plan::CollPlan plan_;
};

// Raises this rank's phase, or fails with `mine`, and waits for all: how the phase has ended. Either all ranks hear
// of MPI_ERR_UNSUPPORTED_OPERATION or none: no rank has failed otherwise, and all go another way.
Task<Status> vote(Executor& executor, transfer::Handshake& handshake, int phase, Status mine);

}  // namespace gantry::coll
