// SPDX-License-Identifier: BSD-3-Clause
//
// The staging pool's promises: slots never overlap, waiting is first come first served, sinks keep
// a reserve, chunks ahead of their verdict are bounded.
#include "transfer/slots.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <random>
#include <vector>

namespace gantry::transfer {
namespace {

class StillClock final : public Clock {
  public:
    Nanoseconds now() const override { return 0; }
};

struct SlotPoolTest : ::testing::Test {
    StillClock clock;
    Executor executor{clock};
    std::vector<std::byte> memory = std::vector<std::byte>(16 * 1024);
    SlotPool pool{memory, 1024};
    void run() {
        while (executor.has_ready())
            executor.run_ready();
    }
};

Task<Status> acquire_into(Executor& executor, SlotPool& pool, Bytes bytes, SlotUse use,
                          Slot* slot) {
    Result<Slot> got = co_await pool.acquire(executor, bytes, use);
    if (!got.ok()) co_return got.status();
    *slot = *got;
    co_return success();
}

TEST_F(SlotPoolTest, SourcesLeaveAQuarterToSinks) {
    Slot slot;
    int taken = 0;
    while ((slot = pool.try_acquire(1024, SlotUse::source)).units != 0)
        ++taken;
    EXPECT_EQ(taken, 12);
    EXPECT_NE(pool.try_acquire(4096, SlotUse::sink).units, 0u);
}

TEST_F(SlotPoolTest, SinksAndChunksAheadLeaveAQuarterToSourcesInOnePiece) {
    while (pool.try_acquire(1024, SlotUse::sink).units != 0) {
    }
    while (pool.try_acquire(1024, SlotUse::ahead).units != 0) {
    }
    EXPECT_EQ(pool.try_acquire(pool.largest(), SlotUse::source).units, 4u)
        << "two ranks whose slots are all lent to each other would wait for ever";
}

TEST_F(SlotPoolTest, ChunksAheadOfTheirVerdictHoldAtMostAQuarter) {
    int taken = 0;
    while (pool.try_acquire(1024, SlotUse::ahead).units != 0)
        ++taken;
    EXPECT_EQ(taken, 4);
    EXPECT_NE(pool.try_acquire(1024, SlotUse::source).units, 0u);
}

TEST_F(SlotPoolTest, FewUnitsKeepOneForSourcesAndOneForSinks) {
    for (const std::size_t units : {2u, 3u}) {
        SCOPED_TRACE(units);
        SlotPool few(std::span<std::byte>(memory).first(units * 1024), 1024);
        EXPECT_EQ(few.largest(), 1024u);
        int sinks = 0, ahead = 0;
        while (few.try_acquire(1024, SlotUse::sink).units != 0)
            ++sinks;
        while (few.try_acquire(1024, SlotUse::ahead).units != 0)
            ++ahead;
        EXPECT_EQ(sinks, 1);
        EXPECT_EQ(ahead, static_cast<int>(units) - 2);
        const Slot source = few.try_acquire(1024, SlotUse::source);
        EXPECT_NE(source.units, 0u) << "all slots are lent to peers, who wait for ours";
        EXPECT_EQ(few.try_acquire(1024, SlotUse::sink).units, 0u);
    }
}

// --- page-locking as slots are taken ---------------------------------------------------------------

struct LockedPool : SlotPoolTest {
    static constexpr Bytes kUnit = 16;
    bool refuses = false;
    std::vector<std::span<std::byte>> locked;
    SlotPool large{memory, kUnit, [this](std::span<std::byte> region) {
                       if (!refuses) locked.push_back(region);
                       return !refuses;
                   }};
    bool is_locked(const Slot& slot) const {
        const std::span<std::byte> whole(slot.memory, slot.units * kUnit);
        for (const std::span<std::byte>& region : locked)
            if (whole.data() >= region.data() &&
                whole.data() + whole.size() <= region.data() + region.size())
                return true;
        return false;
    }
    Bytes locked_bytes() const {
        Bytes all = 0;
        for (const std::span<std::byte>& region : locked)
            all += region.size();
        return all;
    }
};

TEST_F(LockedPool, ASmallSlotLocksASixtyFourthOfIt) {
    for (const SlotUse use : {SlotUse::sink, SlotUse::source}) {
        const Bytes before = locked_bytes();
        EXPECT_TRUE(is_locked(large.try_acquire(kUnit, use)));
        EXPECT_EQ(locked_bytes() - before, memory.size() / 64);
    }
}

TEST_F(LockedPool, TheThirdSlotLocksAllOfItOnce) {
    for (int i = 0; i < 3; ++i)
        large.release(large.try_acquire(kUnit, SlotUse::ahead));
    EXPECT_EQ(locked_bytes(), memory.size());
    const std::size_t calls = locked.size();
    while (large.try_acquire(kUnit, SlotUse::source).units != 0) {
    }
    EXPECT_EQ(locked.size(), calls);
}

TEST_F(LockedPool, WhatCouldNotBeLockedYetIsLockedLater) {
    refuses = true;
    EXPECT_NE(large.try_acquire(kUnit, SlotUse::ahead).units, 0u) << "it is there all the same";
    EXPECT_TRUE(locked.empty());
    refuses = false;
    EXPECT_TRUE(is_locked(large.try_acquire(kUnit, SlotUse::ahead)));
}

// A copy engine takes no memory that two registrations hold together.
TEST_F(LockedPool, NoSlotCrossesTheBorderOfARegion) {
    std::mt19937 dice(5);
    std::vector<Slot> held;
    const auto most = static_cast<Bytes>(large.largest() / kUnit);
    for (int turn = 0; turn < 5000; ++turn) {
        if (!held.empty() && dice() % 2 == 0) {
            std::swap(held[dice() % held.size()], held.back());
            large.release(held.back());
            held.pop_back();
            continue;
        }
        const SlotUse use = std::array{SlotUse::source, SlotUse::ahead, SlotUse::sink}[dice() % 3];
        const Bytes bytes = (1 + dice() % (turn % 7 == 0 ? most : 8)) * kUnit;
        const Slot slot = large.try_acquire(bytes, use);
        if (slot.units == 0) continue;
        EXPECT_TRUE(is_locked(slot)) << turn;
        held.push_back(slot);
    }
}

// What one rank takes for itself leaves a piece of the largest size to each other use.
TEST_F(LockedPool, TheLargestSlotIsThereForSourcesAndSinksAlike) {
    while (large.try_acquire(kUnit, SlotUse::sink).units != 0) {
    }
    while (large.try_acquire(kUnit, SlotUse::ahead).units != 0) {
    }
    EXPECT_NE(large.try_acquire(large.largest(), SlotUse::source).units, 0u);
    SlotPool other{memory, kUnit, [](std::span<std::byte>) { return true; }};
    while (other.try_acquire(kUnit, SlotUse::source).units != 0) {
    }
    EXPECT_NE(other.try_acquire(other.largest(), SlotUse::sink).units, 0u);
}

TEST_F(SlotPoolTest, TheOnlyUnitIsNeverHeldByAChunkAheadOfItsVerdict) {
    SlotPool one(std::span<std::byte>(memory).first(1024), 1024);
    EXPECT_EQ(one.try_acquire(1024, SlotUse::ahead).units, 0u);
    EXPECT_EQ(one.try_acquire(1024, SlotUse::source).units, 1u);
}

TEST_F(SlotPoolTest, WaitersAreServedInOrder) {
    std::vector<Slot> held;
    for (int i = 0; i < 12; ++i)
        held.push_back(pool.try_acquire(1024, SlotUse::source));
    Slot first, second;
    Task<Status> one = acquire_into(executor, pool, 1024, SlotUse::source, &first);
    Task<Status> two = acquire_into(executor, pool, 1024, SlotUse::source, &second);
    one.start();
    two.start();
    pool.release(held[5]);
    run();
    EXPECT_TRUE(one.done());
    EXPECT_FALSE(two.done());
    EXPECT_EQ(first.units, 1u);
    pool.release(held[0]);
    run();
    EXPECT_TRUE(two.done());
}

TEST_F(SlotPoolTest, ASinkDoesNotQueueBehindWaitingSources) {
    Slot held;
    for (int i = 0; i < 12; ++i) {
        held = pool.try_acquire(1024, SlotUse::source);
        ASSERT_NE(held.units, 0u);
    }
    Slot waiting, sink;
    Task<Status> source = acquire_into(executor, pool, 1024, SlotUse::source, &waiting);
    source.start();
    Task<Status> into = acquire_into(executor, pool, 1024, SlotUse::sink, &sink);
    into.start();
    EXPECT_TRUE(into.done()) << "the reserve must stay reachable, or both sides wait for ever";
    pool.release(sink);
    pool.release(held);
    run();
    EXPECT_TRUE(source.done());
}

TEST_F(SlotPoolTest, ASourceDoesNotQueueBehindWaitingSinks) {
    while (pool.try_acquire(1024, SlotUse::sink).units != 0) {
    }
    Slot waiting;
    Task<Status> sink = acquire_into(executor, pool, 1024, SlotUse::sink, &waiting);
    sink.start();
    ASSERT_FALSE(sink.done());
    EXPECT_NE(pool.try_acquire(1024, SlotUse::source).units, 0u)
        << "the sink waits for the peer, and the peer may wait for this source";
    pool.release(0, 1);
    run();
    EXPECT_TRUE(sink.done());
}

TEST_F(SlotPoolTest, ASlotThatCanNeverBeHadIsAnErrorNotAWait) {
    Slot slot;
    Task<Status> task = acquire_into(executor, pool, 64 * 1024, SlotUse::source, &slot);
    task.start();
    ASSERT_TRUE(task.done());
    EXPECT_EQ(task.take().error_class(), MPI_ERR_INTERN);
}

TEST_F(SlotPoolTest, ASlotThatIsLentWhileItIsFilledIsFreeWhenBothHaveLetGo) {
    const std::uint32_t all = pool.free_units();
    for (const bool back_first : {true, false}) {
        const Slot slot = pool.try_acquire(2048, SlotUse::ahead);
        pool.grant_early(slot, 1);
        if (back_first)
            pool.release(slot.unit, slot.units);
        else
            pool.settle(slot);
        EXPECT_EQ(pool.free_units(), all - 2);
        if (back_first)
            pool.settle(slot);
        else
            pool.release(slot.unit, slot.units);
        EXPECT_EQ(pool.free_units(), all);
    }
}

TEST_F(SlotPoolTest, ASlotThatALostRankHoldsIsFreeWhenItIsFilled) {
    const std::uint32_t all = pool.free_units();
    const Slot slot = pool.try_acquire(2048, SlotUse::ahead);
    pool.grant_early(slot, 3);
    pool.take_back(3);
    EXPECT_EQ(pool.free_units(), all - 2) << "the copy into it is under way";
    pool.settle(slot);
    EXPECT_EQ(pool.free_units(), all);
    pool.take_back(slot);  // of nobody any more: nothing happens
    EXPECT_EQ(pool.free_units(), all);
}

TEST_F(SlotPoolTest, SlotsNeverOverlapUnderRandomUse) {
    for (unsigned seed = 1; seed <= 20; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        std::mt19937 random(seed);
        SlotPool fresh(memory, 1024);
        std::vector<Slot> held;
        std::vector<int> owner(16, 0);
        for (int step = 1; step < 500; ++step) {
            if (random() % 2 == 0) {
                Slot slot =
                    fresh.try_acquire(1 + random() % 5000, static_cast<SlotUse>(random() % 3));
                for (std::uint32_t unit = slot.unit; unit < slot.unit + slot.units; ++unit) {
                    ASSERT_EQ(owner[unit], 0);
                    owner[unit] = step;
                }
                if (slot.units != 0) held.push_back(slot);
            } else if (!held.empty()) {
                const std::size_t index = random() % held.size();
                const Slot slot = held[index];
                for (std::uint32_t unit = slot.unit; unit < slot.unit + slot.units; ++unit)
                    owner[unit] = 0;
                fresh.release(slot);
                held.erase(held.begin() + static_cast<std::ptrdiff_t>(index));
            }
        }
        for (const Slot& slot : held)
            fresh.release(slot);
        EXPECT_EQ(fresh.free_units(), 16u);
    }
}

}  // namespace
}  // namespace gantry::transfer
