// SPDX-License-Identifier: BSD-3-Clause
//
// What processes share about the devices, when one of them is killed at the worst moment.
#include "shared_page.hpp"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace simgpu {
namespace {

// A launcher may wait for another rank first: until somebody asks after the killed one it is a
// process still, for kill().
TEST(SharedPage, ADeviceThatAKilledProcessHeldIsTakenBeforeItsParentHearsOfIt) {
    SharedPage page;
    page.open("shared-page-test-" + std::to_string(getpid()));
    const pid_t killed = fork();
    if (killed == 0) {
        page.lock(0);
        raise(SIGKILL);
    }
    siginfo_t about{};
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(killed), &about, WEXITED | WNOWAIT), 0);
    ASSERT_EQ(kill(killed, 0), 0) << "a zombie";
    const Interval taken = page.reserve(0, {.engine = 0, .occupancy = 100}, 1000, 0);
    EXPECT_EQ(taken.start, 1000);
    EXPECT_EQ(taken.end, 1100);
    waitpid(killed, nullptr, 0);
    page.leave();
}

}  // namespace
}  // namespace simgpu
