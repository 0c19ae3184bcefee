// SPDX-License-Identifier: BSD-3-Clause
#include "coll/mailbox_use.hpp"

#include "coll/node/mapped_peers.hpp"
#include "transfer/context.hpp"

namespace gantry::coll {

Task<Status> MailboxUse::open(Executor& executor, Team team) {
    using plan::Collective;
    constexpr Bytes kShortest = 8, kLongest = kMiB;
    settled_ = true;
    transfer::NodeSegment& node_segment = team.context->node_segment;
    if (team.planner == nullptr || team.size() < 2 || !tuning_of(team).node_segment ||
        !node_segment.covers(ranks_of(team)))
        co_return success();
    const transfer::HandshakeKey key{team.group->context, team.tag, team.phase};
    Result<std::unique_ptr<transfer::Mailbox>> opened =
        co_await node_segment.open_mailbox(executor, ranks_of(team), team.rank(), key);
    if (!opened.ok()) co_return std::move(opened).status();
    if (*opened == nullptr || is_revoked_) co_return success();
    mailbox_ = std::move(*opened);
    // Where some rank uses a GPU, the first calls are expected to bring its memory.
    const bool uses_gpu = team.context->device.active();
    for (std::size_t step = 0; step < 2 * transfer::kMailboxEpoch && mailbox_->begin(); ++step)
        mailbox_->pass(uses_gpu);
    for (const Collective operation :
         {Collective::barrier, Collective::bcast, Collective::reduce, Collective::allreduce,
          Collective::reduce_scatter, Collective::allgather, Collective::allgatherv,
          Collective::alltoall, Collective::gather, Collective::scatter, Collective::scan}) {
        Bytes& most = most_[static_cast<std::size_t>(operation)];
        const Bytes last = operation == Collective::barrier ? kShortest : kLongest;
        for (Bytes bytes = kShortest; bytes <= last; bytes *= 2) {
            if (!team.planner->takes_mailbox(team, operation, bytes)) break;
            most = bytes;
        }
    }
    co_return success();
}

}  // namespace gantry::coll
