// SPDX-License-Identifier: BSD-3-Clause
//
// A rank that dies in the middle of a collective, at any time, by any algorithm: every other rank ends,
// with the right bytes or an error.
#include "algorithms.hpp"

namespace gantry::coll {
namespace {

world::Options machine(int ranks) {
    world::Options options;
    options.machine = "h200";
    options.ranks = ranks;
    options.ranks_per_node = 2;
    options.seed = 5;
    options.jitter = kMicrosecond;
    return options;
}

class DyingRank : public ::testing::TestWithParam<Algorithms> {};

TEST_P(DyingRank, LeavesRightBytesOrAnErrorOnEveryOther) {
    for (const plan::Algorithm algorithm : GetParam().list) {
        for (const int ranks : {3, 5, 8}) {
            int wrong = 0;
            const Setting setting{.operation = GetParam().operation,
                                  .algorithm = algorithm,
                                  .count = 600,
                                  .root = 1,
                                  .wrong = &wrong};
            const world::Program program = [setting](Rank& rank) {
                return once(rank.executor, rank, setting);
            };
            world::World healthy(machine(ranks));
            const world::Ending whole = healthy.run(program);
            ASSERT_TRUE(whole.good()) << text(setting) << ": " << whole;
            constexpr int kTimes = 12;
            for (int step = 0; step < kTimes; ++step) {
                const int victim = step % ranks;
                world::World world(machine(ranks));
                world.kill_at(whole.time * step / kTimes, victim);
                const world::Ending ending = world.run(program);
                ASSERT_FALSE(ending.stuck) << ranks << " ranks, rank " << victim << " dies at step "
                                           << step << ": " << text(setting) << ": " << ending;
                ASSERT_EQ(wrong, 0)
                    << ranks << " ranks, rank " << victim << " dies at step " << step << ": "
                    << text(setting) << ": wrong bytes and no error";
            }
        }
    }
}
INSTANTIATE_TEST_SUITE_P(Operations, DyingRank, ::testing::ValuesIn(all_algorithms()),
                         [](const auto& of) { return std::string(name(of.param.operation)); });

}  // namespace
}  // namespace gantry::coll
