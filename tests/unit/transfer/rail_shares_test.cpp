// SPDX-License-Identifier: BSD-3-Clause
//
// How puts are divided among rails: every byte once, by each policy's rule, around rails that are
// down, and how measured rates change the shares.
#include "transfer/rail_shares.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace gantry::transfer {
namespace {

constexpr double kRate = 1e9;  // a byte a nanosecond
constexpr Nanoseconds kLatency = 1000;
constexpr RailPolicy kPolicies[] = {RailPolicy::binding, RailPolicy::round_robin, RailPolicy::even,
                                    RailPolicy::weighted};

RailRules rules(RailPolicy policy) {
    return {.policy = policy, .small_max = 16 * kKiB, .stripe = 64 * kKiB};
}
std::vector<int> rails_of(const Stripes& stripes) {
    std::vector<int> found;
    for (const Stripe& stripe : stripes.all())
        found.push_back(stripe.rail);
    return found;
}
// Puts one after the other, each rail at its own rate; ends when the last part has arrived.
void carry(RailShares& shares, const Stripes& stripes, const std::vector<double>& rates,
           Nanoseconds& now) {
    Nanoseconds end = now;
    for (const Stripe& stripe : stripes.all())
        shares.begin(stripe.rail, stripe.bytes, now);
    for (const Stripe& stripe : stripes.all()) {
        const double rate = rates[static_cast<std::size_t>(stripe.rail)];
        const Nanoseconds at =
            now + kLatency +
            static_cast<Nanoseconds>(static_cast<double>(stripe.bytes) * 1e9 / rate);
        shares.end(stripe.rail, stripe.bytes, at, true);
        end = std::max(end, at);
    }
    now = end;
}

TEST(RailShares, EveryByteOfAPutIsCarriedOnceByRailsThatAreUp) {
    for (const unsigned seed : {1u, 2u, 3u}) {
        std::mt19937_64 random(seed);
        for (const RailPolicy policy : kPolicies) {
            const int rails = 1 + static_cast<int>(random() % kMostRails);
            RailShares shares(rails, static_cast<int>(random() % static_cast<unsigned>(rails)),
                              kRate, kLatency);
            for (int step = 0; step < 2000; ++step) {
                const int which = static_cast<int>(random() % static_cast<unsigned>(rails));
                if (shares.is_up(which) && shares.up() > 1)
                    shares.lose(which);
                else
                    shares.regain(which);
                const Bytes bytes = random() % (8 * kMiB);
                const int most = 1 + static_cast<int>(random() % kMostRails);
                const Stripes stripes = shares.divide(bytes, most, rules(policy));
                Bytes next = 0;
                for (const Stripe& stripe : stripes.all()) {
                    ASSERT_EQ(stripe.offset, next) << "seed " << seed;
                    ASSERT_TRUE(shares.is_up(stripe.rail)) << "seed " << seed;
                    if (stripes.all().size() > 1) {
                        ASSERT_GE(stripe.bytes, 64 * kKiB - 1) << "seed " << seed;
                    }
                    next += stripe.bytes;
                }
                ASSERT_EQ(next, bytes) << "seed " << seed;
                ASSERT_LE(static_cast<int>(stripes.all().size()), most) << "seed " << seed;
                for (const Stripe& stripe : stripes.all())
                    shares.begin(stripe.rail, stripe.bytes, step);
                for (const Stripe& stripe : stripes.all())
                    shares.end(stripe.rail, stripe.bytes, step + 10, random() % 4 != 0);
            }
        }
    }
}

TEST(RailShares, SmallPutsTakeTheHomeRailOrTheNextOneThatIsUp) {
    for (const RailPolicy policy : kPolicies) {
        RailShares shares(3, 1, kRate, kLatency);
        for (int i = 0; i < 4; ++i)
            EXPECT_EQ(rails_of(shares.divide(16 * kKiB, 3, rules(policy))), std::vector<int>{1});
        shares.lose(1);
        EXPECT_EQ(rails_of(shares.divide(0, 3, rules(policy))), std::vector<int>{2});
        shares.regain(1);
        EXPECT_EQ(rails_of(shares.divide(0, 3, rules(policy))), std::vector<int>{1});
    }
}

TEST(RailShares, LargePutsFollowThePolicy) {
    RailShares bound(2, 0, kRate, kLatency), turns(2, 0, kRate, kLatency),
        even(2, 0, kRate, kLatency);
    const Bytes bytes = kMiB;
    EXPECT_EQ(rails_of(bound.divide(bytes, 2, rules(RailPolicy::binding))), std::vector<int>{0});
    EXPECT_EQ(rails_of(turns.divide(bytes, 2, rules(RailPolicy::round_robin))),
              std::vector<int>{1});
    EXPECT_EQ(rails_of(turns.divide(bytes, 2, rules(RailPolicy::round_robin))),
              std::vector<int>{0});
    const Stripes halves = even.divide(bytes, 2, rules(RailPolicy::even));
    ASSERT_EQ(halves.all().size(), 2u);
    EXPECT_EQ(halves.all()[0].bytes, bytes / 2);
    EXPECT_NE(halves.all()[0].rail, halves.all()[1].rail);
    // Two parts of 64 KiB at least, so 127 KiB stay whole.
    EXPECT_EQ(even.divide(127 * kKiB, 2, rules(RailPolicy::even)).all().size(), 1u);
}

TEST(RailShares, WeightedPutsFillTheRailThatHasLessToCarry) {
    RailShares shares(2, 0, kRate, kLatency);
    shares.begin(0, 512 * kKiB, 0);
    EXPECT_EQ(rails_of(shares.divide(100 * kKiB, 2, rules(RailPolicy::weighted))),
              std::vector<int>{1});
    const Stripes stripes = shares.divide(kMiB, 2, rules(RailPolicy::weighted));
    ASSERT_EQ(stripes.all().size(), 2u);
    EXPECT_EQ(stripes.all()[0].bytes, 256 * kKiB);
    EXPECT_EQ(stripes.all()[1].bytes, 768 * kKiB);
}

TEST(RailShares, MeasuredRatesBecomeTheShares) {
    const std::vector<double> rates = {2e9, 1e9, 0.5e9};
    RailShares shares(3, 0, kRate, kLatency);
    Nanoseconds now = 0;
    for (int step = 0; step < 8; ++step)
        carry(shares, shares.divide(7 * kMiB, 3, rules(RailPolicy::weighted)), rates, now);
    const Stripes stripes = shares.divide(7 * kMiB, 3, rules(RailPolicy::weighted));
    ASSERT_EQ(stripes.all().size(), 3u);
    for (const Stripe& stripe : stripes.all()) {
        const double share = static_cast<double>(stripe.bytes) / static_cast<double>(7 * kMiB);
        EXPECT_NEAR(share, rates[static_cast<std::size_t>(stripe.rail)] / 3.5e9, 0.01);
    }
}

// Answers of both rails wait until the process looks, and are taken at one moment.
TEST(RailShares, WhatEndsAtOneMomentSaysOnlyTogetherHowLongItTook) {
    const std::vector<double> rates = {0.05e9, 0.025e9};
    RailShares shares(2, 0, kRate, kLatency);
    Nanoseconds now = 0;
    for (int window = 0; window < 10; ++window) {
        std::vector<Stripe> under_way;
        std::array<Bytes, 2> carried{};
        for (int put = 0; put < 8; ++put) {
            const Stripes stripes = shares.divide(4 * kMiB, 2, rules(RailPolicy::weighted));
            for (const Stripe& stripe : stripes.all()) {
                shares.begin(stripe.rail, stripe.bytes, now);
                carried[static_cast<std::size_t>(stripe.rail)] += stripe.bytes;
                under_way.push_back(stripe);
            }
        }
        now += static_cast<Nanoseconds>(1e9 * std::max(static_cast<double>(carried[0]) / rates[0],
                                                       static_cast<double>(carried[1]) / rates[1]));
        for (const Stripe& stripe : under_way)
            shares.end(stripe.rail, stripe.bytes, ++now, true);
    }
    for (int rail : {0, 1}) {
        EXPECT_GT(shares.rate(rail), 0.4 * rates[static_cast<std::size_t>(rail)]);
        EXPECT_LT(shares.rate(rail), 1.25 * rates[static_cast<std::size_t>(rail)]);
    }
}

TEST(RailShares, ARailThatBecameFasterGetsMoreAgain) {
    std::vector<double> rates = {1e9, 0.01e9};
    RailShares shares(2, 0, kRate, kLatency);
    Nanoseconds now = 0;
    for (int step = 0; step < 8; ++step)
        carry(shares, shares.divide(64 * kMiB, 2, rules(RailPolicy::weighted)), rates, now);
    EXPECT_LT(shares.rate(1), 0.1 * shares.rate(0));
    rates[1] = 1e9;
    for (int step = 0; step < 16; ++step)
        carry(shares, shares.divide(64 * kMiB, 2, rules(RailPolicy::weighted)), rates, now);
    EXPECT_NEAR(shares.rate(1) / shares.rate(0), 1, 0.05);
}

}  // namespace
}  // namespace gantry::transfer
