// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/engine/death_watch.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace gantry::mpi {
namespace {

// A job whose launcher may tell of deaths, and counts how often it is looked at.
class Telling final : public job::Job {
  public:
    explicit Telling(bool tells) : tells_(tells) {}
    bool watch_deaths(std::uint64_t number) override {
        number_ = number;
        return tells_;
    }
    std::vector<job::Death> deaths() override {
        ++looks;
        return std::exchange(told, {});
    }
    void tell(int rank) { told.push_back({number_, rank}); }
    int looks = 0;
    std::vector<job::Death> told;

    const char* launcher() const override { return "telling"; }
    int rank() const override { return 0; }
    int size() const override { return 8; }
    std::string_view id() const override { return "telling"; }
    const std::vector<int>& nodes() const override { return nodes_; }
    Status put(std::string_view, std::string_view) override { return success(); }
    Task<Status> fence(Executor&) override { co_return success(); }
    Result<std::string> get(int, std::string_view) override { return std::string(); }
    void abort(int, std::string_view) override {}
    Status finalize() override { return success(); }

  private:
    const bool tells_;
    std::uint64_t number_ = 0;
    std::vector<int> nodes_ = std::vector<int>(8);
};

// The bound of docs/user/faults.md.
TEST(DeathWatch, ADeathIsNewsWithin256TurnsOfProgress) {
    for (const int told_at : {0, 1, 100, 255, 256, 1000}) {
        Telling job(true);
        DeathWatch watch;
        watch.begin(job, 77);
        std::vector<job::Death> heard;
        int turns = 0, heard_at = -1;
        for (; turns < 3000; ++turns) {
            if (turns == told_at) job.tell(3);
            watch.turn([&](const job::Death& death) {
                heard.push_back(death);
                heard_at = turns;
            });
        }
        EXPECT_EQ(heard, (std::vector<job::Death>{{77, 3}})) << "once";
        EXPECT_LT(heard_at - told_at, DeathWatch::kTurns);
        EXPECT_LE(job.looks, turns / DeathWatch::kTurns + 1);
    }
    EXPECT_EQ(DeathWatch::kTurns, 256);
}

TEST(DeathWatch, ALauncherThatTellsNothingIsNotLookedAt) {
    Telling job(false);
    DeathWatch watch;
    watch.begin(job, 77);
    for (int turn = 0; turn < 1000; ++turn)
        watch.turn([](const job::Death&) { ADD_FAILURE(); });
    EXPECT_EQ(job.looks, 0);
}

TEST(DeathWatch, NothingIsLookedAtBehindItsEnd) {
    Telling job(true);
    DeathWatch watch;
    watch.begin(job, 77);
    watch.end();
    job.tell(3);
    for (int turn = 0; turn < 1000; ++turn)
        watch.turn([](const job::Death&) { ADD_FAILURE(); });
    EXPECT_EQ(job.looks, 0);
}

}  // namespace
}  // namespace gantry::mpi
