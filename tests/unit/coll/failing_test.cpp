// SPDX-License-Identifier: BSD-3-Clause
//
// A rank that dies in the middle of a collective, at any time and at any of its messages, by any algorithm:
// every other rank ends, with the right bytes or an error. `./dev test --all DyingRank`: each rank at each of
// its messages, and at each half of a microsecond.
#include "algorithms.hpp"
#include "all.hpp"

#include <map>
#include <optional>

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
// A world of which a rank dies as it is about to send its nth message; -1: nobody dies.
class MortalWorld {
  public:
    MortalWorld(world::Options options, int victim, int step) {
        options.on_send =
            options.on_send_in_node = [this, victim, step](int rank, transport::MessageKind) {
                const int message = sent_[rank]++;
                if (rank != victim || step < 0 || message < step) return success();
                // What it has sent before is under way.
                if (message == step)
                    world_->kill_at(world_->timeline().now() + 20 * kMicrosecond, victim);
                return failure(MPI_ERR_OTHER, "rank {} dies", rank);
            };
        world_.emplace(std::move(options));
    }
    world::World& operator*() { return *world_; }
    int sent(int rank) { return sent_[rank]; }

  private:
    std::map<int, int> sent_;
    std::optional<world::World> world_;
};

// One of a collective's steps in so many is tried.
struct Steps {
    int messages = 1, victims = 1;
    Nanoseconds time = 500;
};

void expect_ends(const Setting& setting, int ranks, Steps each) {
    int wrong = 0;
    Setting counted = setting;
    counted.wrong = &wrong;
    const world::Program program = [counted](Rank& rank) {
        return once(rank.executor, rank, counted);
    };
    const auto judge = [&](const world::Ending& ending, int victim, const std::string& when) {
        ASSERT_FALSE(ending.stuck) << ranks << " ranks, rank " << victim << " dies at " << when
                                   << ": " << text(setting) << ": " << ending;
        ASSERT_EQ(wrong, 0) << ranks << " ranks, rank " << victim << " dies at " << when << ": "
                            << text(setting) << ": wrong bytes and no error";
    };
    MortalWorld healthy(machine(ranks), 0, -1);
    const world::Ending whole = (*healthy).run(program);
    ASSERT_TRUE(whole.good()) << text(setting) << ": " << whole;
    for (int victim = 0; victim < ranks; victim += each.victims) {
        for (int step = victim % each.messages; step < healthy.sent(victim);
             step += each.messages) {
            MortalWorld mortal(machine(ranks), victim, step);
            judge((*mortal).run(program), victim, fmt::format("its message {}", step));
            if (testing::Test::HasFatalFailure()) return;
        }
        for (Nanoseconds time = 0; time < whole.time; time += each.time) {
            world::World world(machine(ranks));
            world.kill_at(time, victim);
            judge(world.run(program), victim, fmt::format("{} ns", time));
            if (testing::Test::HasFatalFailure()) return;
        }
    }
}

TEST_P(DyingRank, AtAnyOfItsMessagesLeavesNoneWaiting) {
    for (const plan::Algorithm algorithm : GetParam().list) {
        const Setting setting{
            .operation = GetParam().operation, .algorithm = algorithm, .count = 600, .root = 1};
        if (!all_is_tested()) {
            expect_ends(setting, 5, {.messages = 3, .victims = 2, .time = kSecond});
            continue;
        }
        for (const int ranks : {2, 3, 5, 8})
            expect_ends(setting, ranks, {});
    }
}

INSTANTIATE_TEST_SUITE_P(Operations, DyingRank, ::testing::ValuesIn(all_algorithms()),
                         [](const auto& of) { return std::string(name(of.param.operation)); });

}  // namespace
}  // namespace gantry::coll
