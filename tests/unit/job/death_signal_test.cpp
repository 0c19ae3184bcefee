// SPDX-License-Identifier: BSD-3-Clause
#include "job/death_signal.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

namespace gantry::job {
namespace {

class DeathSignal : public testing::Test {
  protected:
    const decltype(SIG_DFL) before = std::signal(SIGUSR1, SIG_DFL);
    ~DeathSignal() override { std::signal(SIGUSR1, before); }
};

int heard_by_the_program = 0;

TEST_F(DeathSignal, OfTheLauncherIsNotedOnce) {
    ASSERT_TRUE(death_signal::take(getpid()));
    EXPECT_FALSE(death_signal::came());
    std::raise(SIGUSR1);
    EXPECT_TRUE(death_signal::came());
    EXPECT_FALSE(death_signal::came());
}

TEST_F(DeathSignal, OfAnybodyElseEndsTheProgram) {
    EXPECT_EXIT(
        {
            death_signal::take(getppid());
            std::raise(SIGUSR1);
        },
        testing::KilledBySignal(SIGUSR1), "");
}

TEST_F(DeathSignal, IsTakenTwiceButNotFromAProgramThatUsesIt) {
    EXPECT_TRUE(death_signal::take(getpid()));
    EXPECT_TRUE(death_signal::take(getpid())) << "MPI begins again";
    std::signal(SIGUSR1, SIG_IGN);
    EXPECT_FALSE(death_signal::take(getpid()));
}

TEST_F(DeathSignal, GoesToAHandlerThatTheProgramInstallsLater) {
    ASSERT_TRUE(death_signal::take(getpid()));
    heard_by_the_program = 0;
    std::signal(SIGUSR1, [](int) { ++heard_by_the_program; });
    std::raise(SIGUSR1);
    EXPECT_FALSE(death_signal::came());
    EXPECT_EQ(heard_by_the_program, 1);
    death_signal::hand_on();
    EXPECT_EQ(heard_by_the_program, 2) << "and keeps it";
}

}  // namespace
}  // namespace gantry::job
