// SPDX-License-Identifier: BSD-3-Clause
//
// A rank that dies while the ranks compare a collective operation, or in the operation behind it: every
// other rank ends, with the right bytes or an error, whatever is compared.
#include "transfer/buffer.hpp"
#include "coll/gather.hpp"
#include "mpi/check/agreement.hpp"
#include "unit/coll/collective_world.hpp"

namespace gantry::mpi {
namespace {

using Numbers = std::vector<std::int64_t>;
using coll::Rank;

coll::Blocks one_each(const Numbers& numbers) {
    const p2p::Buffer one = transfer::bytes_buffer(numbers.data(), sizeof numbers.front());
    coll::Blocks blocks;
    blocks.address = one.address;
    blocks.count = one.count;
    blocks.layout = one.layout;
    return blocks;
}

// All ranks say the same, and have a list for each.
std::shared_ptr<const Terms> terms(Terms::Rule rule, int ranks) {
    auto said = std::make_shared<Terms>();
    said->rule = rule;
    said->said.sends = 1;
    said->outgoing.resize(static_cast<std::size_t>(ranks));
    said->incoming.resize(static_cast<std::size_t>(ranks));
    return said;
}

Task<Status> checked_allgather(Executor& executor, Rank& rank, Terms::Rule rule, int* wrong) {
    coll::Everybody everybody(rank);
    Numbers all(static_cast<std::size_t>(everybody.size()), -1);
    const std::int64_t mine = rank.number;
    const p2p::Buffer own = transfer::bytes_buffer(&mine, sizeof mine);
    const coll::Blocks blocks = one_each(all);
    StartCollective allgather = [&executor, own, blocks](coll::Team team) {
        return coll::allgather(executor, team, own, blocks, false);
    };
    Status ended = co_await run_if_agreed(executor, everybody.team(), terms(rule, everybody.size()),
                                          allgather);
    for (std::size_t from = 0; ended.ok() && from < all.size(); ++from)
        if (all[from] != static_cast<std::int64_t>(from)) ++*wrong;
    co_return ended;
}

world::Options machine() {
    world::Options options;
    options.machine = "h200";
    options.ranks = 5;
    options.ranks_per_node = 2;
    options.seed = 5;
    options.jitter = kMicrosecond;
    return options;
}

TEST(ACheckedCollective, EndsOnEveryOtherRankWhenOneDies) {
    using Rule = Terms::Rule;
    for (const Rule rule : {Rule::alike, Rule::listed, Rule::exchanged, Rule::shares}) {
        int wrong = 0;
        const world::Program program = [rule, &wrong](Rank& rank) {
            return checked_allgather(rank.executor, rank, rule, &wrong);
        };
        world::World healthy(machine());
        const world::Ending whole = healthy.run(program);
        ASSERT_TRUE(whole.good()) << whole;
        constexpr int kTimes = 60;
        for (int step = 0; step < kTimes; ++step) {
            world::World world(machine());
            world.kill_at(whole.time * step / kTimes, step % 5);
            const world::Ending ending = world.run(program);
            ASSERT_FALSE(ending.stuck) << "rule " << static_cast<int>(rule) << ", rank " << step % 5
                                       << " dies at step " << step << ": " << ending;
            ASSERT_EQ(wrong, 0) << "wrong bytes and no error";
        }
    }
}

}  // namespace
}  // namespace gantry::mpi
