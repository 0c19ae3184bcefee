// SPDX-License-Identifier: BSD-3-Clause
#include "device/residency.hpp"

#include <gtest/gtest.h>

namespace gantry::device {
namespace {

constexpr Nanoseconds kIdleTimeout = 20000;

GpuFacts facts() {
    GpuFacts facts;
    facts.kernel_latency = 8000;
    facts.resident_latency = 4000;
    facts.launch = 4000;
    return facts;
}

// Copies so far apart until one is wanted; 0: none was among so many.
int copies_until_wanted(Residency& residency, Nanoseconds apart, Nanoseconds& now,
                        Ends ends = Ends::devices, Copies copies = Copies::alone) {
    for (int copy = 1; copy <= 10000; ++copy) {
        now += apart;
        if (residency.invest(ends, now, nullptr, copies)) return copy;
    }
    return 0;
}

TEST(Residency, StartsWhenWhatItHadSavedPaysForItself) {
    Residency residency(facts(), kIdleTimeout);
    Nanoseconds now = 1'000'000;
    // A launch and a fifth of the time that it stays in vain, 4 us each, at 4 us a copy; the first one
    // has none before it.
    EXPECT_EQ(copies_until_wanted(residency, 5000, now), 3);
}

TEST(Residency, CopiesFarApartWantNone) {
    Residency residency(facts(), kIdleTimeout);
    Nanoseconds now = 1'000'000;
    EXPECT_EQ(copies_until_wanted(residency, kIdleTimeout + 1, now), 0);
}

class Someone final : public Neighbours {
  public:
    bool use(const Uuid& gpu) const override { return gpu == Uuid{7}; }
};

TEST(Residency, NoneStaysWhereAnotherRankWaitsForTurns) {
    const Someone someone;
    for (const int gpu : {7, 8})
        for (const bool mps : {false, true}) {
            GpuFacts shared = facts();
            shared.uuid = Uuid{static_cast<std::uint8_t>(gpu)};
            shared.mps = mps;
            Residency residency(shared, kIdleTimeout);
            bool wanted = false;
            for (Nanoseconds now = 1'000'000; now < 1'200'000; now += 5000)
                wanted = wanted || residency.invest(Ends::devices, now, &someone);
            EXPECT_EQ(wanted, mps || gpu == 8) << gpu << mps;
        }
}

TEST(Residency, OneThatHadNothingToDoMakesTheNextOneDearer) {
    Residency residency(facts(), kIdleTimeout);
    Nanoseconds now = 1'000'000;
    int before = copies_until_wanted(residency, 5000, now);
    for (int attempt = 0; attempt < 6; ++attempt) {
        residency.ended(4000, now);
        now += 10 * kIdleTimeout;
        const int copies = copies_until_wanted(residency, 5000, now);
        EXPECT_EQ(copies, 2 * (before - 1) + 1) << attempt;
        before = copies;
    }
    // With time that is forgotten.
    residency.ended(4000, now);
    now += 10 * 100 * kMillisecond;
    for (int half = 0; half < 10; ++half)
        (void)residency.invest(Ends::devices, now += 100 * kMillisecond, nullptr);
    EXPECT_LE(copies_until_wanted(residency, 5000, now), 5);
    // One that repaid itself makes it cheap again, and the next one comes at once.
    residency.ended(400'000, now);
    now += 10 * kIdleTimeout;
    EXPECT_EQ(copies_until_wanted(residency, 5000, now), 1);
    residency.ended(4000, now);
    now += 10 * kIdleTimeout;
    EXPECT_LE(copies_until_wanted(residency, 5000, now), 5);
}

// The first copy behind its end came as soon as somebody who had waited for it could send it.
TEST(Residency, OneThatWasWaitedForMustHaveSavedAllOfTheTime) {
    for (const Nanoseconds saved : {23'999, 24'000})
        for (const bool soon : {false, true}) {
            Residency residency(facts(), kIdleTimeout);
            Nanoseconds now = 1'000'000;
            ASSERT_EQ(copies_until_wanted(residency, 5000, now), 3);
            residency.took(now += 5000);
            residency.ended(saved, now + kIdleTimeout);
            now += kIdleTimeout + (soon ? 10'000 : 100'000);
            const bool at_once = residency.invest(Ends::devices, now, nullptr);
            EXPECT_EQ(at_once, !soon || saved == 24'000) << saved << soon;
        }
}

// A program that computes between its messages may wait for the whole device there. What a kernel keeps it in
// vain, once for each attempt, is a thirtieth of the time at most, from the start.
TEST(Residency, WhereTheProgramComputesBetweenCopiesLittleTimeIsWaitedForInVain) {
    constexpr Nanoseconds kLong = 50'000, kStep = 34'000;
    Residency residency(facts(), kLong);
    const Nanoseconds begin = 1'000'000;
    Nanoseconds now = begin, in_vain = 0;
    for (int attempt = 0; attempt < 4; ++attempt) {
        ASSERT_GT(copies_until_wanted(residency, kStep, now), 0);
        residency.ended(0, now + kLong);
        in_vain += kLong;
        now += kLong;
        EXPECT_LE(in_vain, (now - begin) / 30) << attempt;
    }
    // Copies that follow each other at once get one as soon as ever.
    Residency other(facts(), kLong);
    now = begin;
    EXPECT_EQ(copies_until_wanted(other, 17'000, now), 5);
}

// What bursts that are far from each other put aside is kept.
TEST(Residency, BurstsAddUp) {
    Residency residency(facts(), kIdleTimeout);
    Nanoseconds now = 1'000'000;
    EXPECT_FALSE(residency.invest(Ends::devices, now, nullptr));
    EXPECT_FALSE(residency.invest(Ends::devices, now += 5000, nullptr));
    EXPECT_FALSE(residency.invest(Ends::devices, now += 10 * kIdleTimeout, nullptr));
    EXPECT_TRUE(residency.invest(Ends::devices, now += 5000, nullptr));
}

// A copy counts by what such a kernel saves of its kind.
TEST(Residency, EachKindOfCopySavesItsOwn) {
    GpuFacts known = facts();
    known.copy_latency = 6000;
    known.copy_in_latency = 5000;
    known.resident_out_latency = 4000;
    known.resident_in_latency = 8000;
    Residency residency(known, kIdleTimeout);
    EXPECT_EQ(residency.saving(Ends::devices), 4000);
    EXPECT_EQ(residency.saving(Ends::to_host), 2000);
    EXPECT_EQ(residency.saving(Ends::from_host), 0) << "slower";
    EXPECT_FALSE(residency.makes(Ends::from_host));
    Nanoseconds now = 1'000'000;
    EXPECT_EQ(copies_until_wanted(residency, 5000, now, Ends::to_host), 5);
    EXPECT_EQ(copies_until_wanted(residency, 5000, now, Ends::from_host), 0);
    known.resident_latency = known.resident_out_latency = 0;
    EXPECT_FALSE(Residency(known, kIdleTimeout).possible());
    known.resident_out_latency = 4000;
    EXPECT_TRUE(Residency(known, kIdleTimeout).possible());
}

// A window of copies to or from the host costs a call and an engine's gap each, which is more than
// one alone takes longer.
TEST(Residency, InARowACopySavesWhatOneMoreCosts) {
    GpuFacts known = facts();
    known.chunk_cost = 4000;
    known.copy_in_latency = 5000;
    known.resident_in_latency = 5200;
    Residency residency(known, kIdleTimeout);
    EXPECT_TRUE(residency.makes(Ends::from_host));
    EXPECT_EQ(residency.saving(Ends::from_host), 0);
    EXPECT_EQ(residency.saving(Ends::from_host, Copies::in_a_row), 3500);
    EXPECT_EQ(residency.saving(Ends::devices, Copies::in_a_row), 4000) << "they share a launch";
    Nanoseconds now = 1'000'000;
    EXPECT_EQ(copies_until_wanted(residency, 500, now, Ends::from_host, Copies::in_a_row), 4);
    EXPECT_FALSE(residency.takes(Ends::from_host, Copies::alone)) << "though it stays";
    EXPECT_TRUE(residency.takes(Ends::from_host, Copies::in_a_row));
    EXPECT_TRUE(residency.takes(Ends::devices, Copies::alone));
    known.resident_in_latency = 8000;
    EXPECT_FALSE(Residency(known, kIdleTimeout).makes(Ends::from_host)) << "much slower";
    known.resident_latency = known.kernel_latency + known.kernel_latency / 4;
    EXPECT_FALSE(Residency(known, kIdleTimeout).makes(Ends::devices))
        << "they share a launch as well";
}

TEST(Residency, IsImpossibleWithoutAPriceOrATime) {
    EXPECT_FALSE(Residency(facts(), 0).possible());
    EXPECT_FALSE(Residency(facts(), 12000).possible()) << "over before the first copy comes";
    GpuFacts unknown = facts();
    unknown.resident_latency = 0;
    EXPECT_FALSE(Residency(unknown, kIdleTimeout).possible());
    EXPECT_TRUE(Residency(facts(), kIdleTimeout).possible());
}

// --- messages that are cut through ---

GpuFacts fast_link() {
    GpuFacts flowing = facts();
    flowing.copy_latency = 7000;
    flowing.resident_out_latency = 4000;
    flowing.copy_in_latency = 5000;
    flowing.resident_in_latency = 4500;
    flowing.d2h_bytes_per_second = 50e9;
    return flowing;
}

TEST(Residency, OfAFlowingMessageItSavesWhatTheOtherEndNeedNotWaitFor) {
    Residency residency(fast_link(), kIdleTimeout);
    ASSERT_TRUE(residency.cuts_through(Ends::to_host) && residency.cuts_through(Ends::from_host));
    // A mebibyte takes 21 us at 50 GB/s, and 7 % more.
    EXPECT_NEAR(static_cast<double>(residency.pace()), 22440, 10);
    EXPECT_EQ(residency.saving_of_cut_through(Ends::to_host, 256 * kKiB),
              3000 + residency.pace() / 8);
    EXPECT_EQ(residency.saving_of_cut_through(Ends::from_host, 256 * kKiB),
              500 + residency.pace() / 8);
    // Copy engines begin with a half of a larger one.
    EXPECT_EQ(residency.saving_of_cut_through(Ends::to_host, 4 * kMiB),
              residency.saving_of_cut_through(Ends::to_host, 512 * kKiB));
}

TEST(Residency, AKernelForLargeMessagesLingersUntilTheNextOneCanBeThere) {
    Residency residency(fast_link(), kIdleTimeout);
    Nanoseconds now = 1'000'000;
    EXPECT_EQ(residency.idle_timeout(), kIdleTimeout);
    int copies = 0;
    while (!residency.invest_in_cut_through(Ends::to_host, kMiB, now += 60'000, nullptr))
        ASSERT_LT(++copies, 20);
    EXPECT_EQ(residency.idle_timeout(), kIdleTimeout + 4 * residency.pace());
    EXPECT_GT(residency.life(), 20 * kIdleTimeout);
    // That was worth it; and small copies get one that wanted_idle_timeout as they like it.
    residency.ended(kMillisecond, now);
    EXPECT_TRUE(residency.invest(Ends::devices, now += 1000, nullptr));
    EXPECT_EQ(residency.idle_timeout(), kIdleTimeout);
}

TEST(Residency, WhereItIsSlowerAloneNothingFlows) {
    GpuFacts slow = fast_link();
    slow.resident_out_latency = 2 * slow.copy_latency;
    Residency residency(slow, kIdleTimeout);
    EXPECT_FALSE(residency.cuts_through(Ends::to_host));
    EXPECT_TRUE(residency.cuts_through(Ends::from_host));
}

}  // namespace
}  // namespace gantry::device
