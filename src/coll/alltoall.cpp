// SPDX-License-Identifier: BSD-3-Clause
//
// Of the v and w forms all ranks know only how many they are.
#include "coll/alltoall.hpp"

#include "coll/node/exchange.hpp"
#include "coll/node/exchange_scratch.hpp"
#include "coll/gather.hpp"
#include "coll/host_image.hpp"
#include "coll/on_node.hpp"
#include "coll/planner.hpp"
#include "transfer/context.hpp"

namespace gantry::coll {

plan::CallQuestion alltoall_question(const Blocks& blocks, bool in_place) {
    plan::CallQuestion question{.operation = plan::Collective::alltoallv};
    question.in_place = in_place;
    if (!blocks.counts.empty() || blocks.layout == nullptr) return question;
    question.operation = plan::Collective::alltoall;
    question.bytes = blocks.count * blocks.layout->size;
    return question;
}

namespace {

Task<Status> by_messages(Executor& executor, Team team, Blocks outgoing, Blocks incoming,
                         plan::CollPlan plan) {
    Task<Status> way;
    switch (plan.algorithm) {
        case plan::Algorithm::bruck:
            way = alltoall_bruck(executor, team, std::move(outgoing), std::move(incoming));
            break;
        case plan::Algorithm::pairwise:
            way = alltoall_pairwise(executor, team, std::move(outgoing), std::move(incoming));
            break;
        case plan::Algorithm::staged:
            way = alltoall_staged(executor, team, std::move(outgoing), std::move(incoming),
                                  plan.segment, plan.outstanding);
            break;
        default:
            way = alltoall_spread(executor, team, std::move(outgoing), std::move(incoming),
                                  plan.outstanding);
            break;
    }
    Status done = co_await std::move(way);
    co_return done;
}

}  // namespace

Task<Status> alltoall(Executor& executor, Team team, Blocks outgoing, Blocks incoming) {
    const plan::CallQuestion question = alltoall_question(incoming, false);
    const plan::CollPlan plan = plan_of(team, question);
    if (plan.meet)
        return on_node(executor, alltoall_directly(executor, team, outgoing, incoming, question),
                       [&executor, team, outgoing, incoming](plan::CollPlan other) {
                           return by_messages(executor, team, outgoing, incoming, other);
                       });
    return by_messages(executor, team, std::move(outgoing), std::move(incoming), plan);
}

namespace {

// The outgoing blocks of an exchange in place of device memory, in memory of our own: the others may then
// store into this rank's blocks. On the GPU, or on the host where there is no scratch memory.
class Outgoing {
  public:
    Outgoing(const Team& team, const Blocks& all) : team_(team) {
        transfer::Context& context = *team.context;
        if (!context.config.cuda || !context.device.active()) return;
        for (int rank = 0; rank < team.size(); ++rank) {
            const p2p::Buffer block = all.of(rank);
            const Bytes bytes = rank == team.rank() ? 0 : block.bytes();
            blocks_.displacements.push_back(static_cast<std::int64_t>(bytes_));
            blocks_.counts.push_back(static_cast<std::int64_t>(bytes));
            if (bytes == 0) continue;
            if (on_host(team, block)) return;
            bytes_ += bytes;
            from_.push_back(block);
        }
        apart_ = bytes_ > 0;
    }
    // False: in host memory, which stays where it is.
    bool apart() const { return apart_; }
    const Blocks& blocks() const { return blocks_; }

    Task<Status> copy(Executor& executor) {
        blocks_.layout = transfer::bytes_buffer(nullptr, 0).layout;
        on_device_ = DeviceScratch(team_, from_.front().data(), bytes_);
        blocks_.address = on_device_.data();
        if (blocks_.address == nullptr) {
            Status ready = on_host_.allocate(team_, bytes_, *blocks_.layout);
            GANTRY_CO_TRY(ready);
            blocks_.address = on_host_.address();
        }
        std::vector<p2p::Buffer> to;
        for (int rank = 0; rank < team_.size(); ++rank)
            if (const p2p::Buffer block = blocks_.of(rank); block.bytes() > 0) to.push_back(block);
        Status copied = co_await copy_blocks(executor, team_, from_, std::move(to));
        co_return copied;
    }

  private:
    const Team team_;
    bool apart_ = false;
    Bytes bytes_ = 0;
    DeviceScratch on_device_;
    HostImage on_host_;
    Blocks blocks_;
    std::vector<p2p::Buffer> from_;
};

}  // namespace

// By messages, each pair of ranks has one message each way, whether a rank swaps its blocks one after
// the other or sends all from a copy.
Task<Status> alltoall_in_place(Executor& executor, Team team, Blocks all) {
    const plan::CallQuestion question = alltoall_question(all, true);
    const plan::CollPlan plan = plan_of(team, question);
    Run run(team);
    Outgoing outgoing(team, all);
    if (outgoing.apart()) {
        Status copied = co_await outgoing.copy(executor);
        run.note(std::move(copied));
    }
    Blocks from = outgoing.apart() ? outgoing.blocks() : all;
    // A rank that has failed says so.
    Team as_it_is = team;
    as_it_is.before = &run.status();
    if (plan.meet) {
        Traffic traffic(team.size());
        for (int rank = 0; rank < team.size(); ++rank) {
            if (rank == team.rank()) continue;
            traffic.outgoing[static_cast<std::size_t>(rank)] = from.of(rank);
            traffic.incoming[static_cast<std::size_t>(rank)] = all.of(rank);
        }
        Result<plan::CollPlan> met =
            co_await exchange_directly(executor, as_it_is, std::move(traffic), question);
        if (!met.ok()) co_return std::move(met).status();
        if (goes_over_node_segment(met->algorithm)) co_return success();
    }
    Status exchanged;
    if (outgoing.apart())
        exchanged = co_await alltoall_spread(executor, as_it_is, std::move(from), all, team.size());
    else
        exchanged = co_await alltoall_swapping(executor, as_it_is, all);
    co_return exchanged;
}

}  // namespace gantry::coll
