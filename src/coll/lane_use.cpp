// SPDX-License-Identifier: BSD-3-Clause
#include "coll/lane_use.hpp"

#include "coll/node/mapped_peers.hpp"
#include "transfer/context.hpp"

namespace gantry::coll {

Task<Status> LaneUse::open(Executor& executor, Team team) {
    using plan::Collective;
    constexpr Bytes kShortest = 8, kLongest = kMiB;
    settled_ = true;
    transfer::Board& board = team.context->board;
    if (team.planner == nullptr || team.size() < 2 || !tuning_of(team).board ||
        !board.covers(ranks_of(team)))
        co_return success();
    const transfer::MeetingKey key{team.group->context, team.tag, team.phase};
    Result<std::unique_ptr<transfer::Lane>> opened =
        co_await board.open_lane(executor, ranks_of(team), team.rank(), key);
    if (!opened.ok()) co_return std::move(opened).status();
    if (*opened == nullptr || is_revoked_) co_return success();
    lane_ = std::move(*opened);
    // Where some rank uses a GPU, the first calls are expected to bring its memory.
    const bool uses_gpu = team.context->device.active();
    for (std::size_t step = 0; step < 2 * transfer::kLaneEpoch && lane_->begin(); ++step)
        lane_->pass(uses_gpu);
    for (const Collective operation :
         {Collective::barrier, Collective::bcast, Collective::reduce, Collective::allreduce,
          Collective::reduce_scatter, Collective::allgather, Collective::allgatherv,
          Collective::alltoall, Collective::gather, Collective::scatter, Collective::scan}) {
        Bytes& most = most_[static_cast<std::size_t>(operation)];
        const Bytes last = operation == Collective::barrier ? kShortest : kLongest;
        for (Bytes bytes = kShortest; bytes <= last; bytes *= 2) {
            if (!team.planner->takes_lane(team, operation, bytes)) break;
            most = bytes;
        }
    }
    co_return success();
}

}  // namespace gantry::coll
