// SPDX-License-Identifier: BSD-3-Clause
//
// Who comes through the lock, and who wakes at the bell. Real threads: the thread sanitizer looks
// at these tests, too.
#include "base/bell.hpp"
#include "base/clock.hpp"
#include "base/engine_lock.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace gantry {
namespace {

TEST(EngineLock, LetsOneInAtATime) {
    EngineLock lock;
    int inside = 0, most = 0, visits = 0;  // not atomic: the lock protects them
    const auto visit = [&] {
        most = std::max(most, ++inside);
        ++visits;
        --inside;
    };
    std::atomic<bool> over{false};
    std::thread background([&] {
        while (!over) {
            if (!lock.try_enter()) continue;
            visit();
            lock.leave_background();
        }
    });
    std::vector<std::thread> program;
    for (int i = 0; i < 2; ++i)
        program.emplace_back([&] {
            for (int round = 0; round < 20000; ++round) {
                lock.enter();
                visit();
                lock.leave();
            }
        });
    for (std::thread& thread : program)
        thread.join();
    over = true;
    background.join();
    EXPECT_EQ(most, 1);
    EXPECT_GE(visits, 40000);
}

TEST(EngineLock, IsEnteredAgainFromInside) {
    EngineLock lock;
    lock.enter();
    EXPECT_TRUE(lock.outermost());
    lock.enter();
    EXPECT_FALSE(lock.outermost());
    lock.leave();
    EXPECT_FALSE(lock.try_enter());
    lock.leave();
    EXPECT_TRUE(lock.try_enter());
    lock.leave_background();
}

TEST(EngineLock, TheBackgroundStaysAwayWhileTheProgramWaits) {
    EngineLock lock;
    ASSERT_TRUE(lock.try_enter());
    std::atomic<bool> came{false};
    std::thread program([&] {
        lock.enter();
        came = true;
        lock.leave();
    });
    while (!lock.wanted())
        std::this_thread::yield();
    lock.leave_background();
    // From here to its visit the lock may be open: it is not ours.
    while (!came)
        EXPECT_FALSE(lock.try_enter() && !came);
    program.join();
}

TEST(Bell, ARingBetweenListeningAndSleepingIsHeard) {
    Bell bell;
    const Bell::Ticket ticket = bell.listen();
    bell.ring();
    EXPECT_TRUE(bell.sleep(ticket, 60 * kSecond));
}

TEST(Bell, NobodyListensNobodyIsWoken) {
    Bell bell;
    bell.ring();
    bell.listen();
    bell.stay_awake();
    bell.ring();
    EXPECT_EQ(bell.rings(), 0u);
}

TEST(Bell, ASleepEndsByItself) {
    Bell bell;
    EXPECT_FALSE(bell.sleep(bell.listen(), 50 * kMicrosecond));
}

TEST(Bell, WakesASleeper) {
    Bell bell;
    for (int round = 0; round < 100; ++round) {
        std::atomic<bool> listening{false};
        bool heard = false;
        std::thread sleeper([&] {
            const Bell::Ticket ticket = bell.listen();
            listening = true;
            heard = bell.sleep(ticket, 60 * kSecond);
        });
        while (!listening)
            std::this_thread::yield();
        bell.ring();
        sleeper.join();
        EXPECT_TRUE(heard);
    }
}

}  // namespace
}  // namespace gantry
