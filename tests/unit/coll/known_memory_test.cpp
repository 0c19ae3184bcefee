// SPDX-License-Identifier: BSD-3-Clause
#include "coll/known_memory.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace gantry::coll {
namespace {

using plan::Collective;
using plan::CollMemory;

constexpr Bytes kShort = 8, kLong = kMiB;

// All tell, and all hear.
void tell(std::vector<KnownMemory>& ranks) {
    std::uint64_t common = ~std::uint64_t{0};
    for (const KnownMemory& each : ranks)
        common &= each.told();
    for (KnownMemory& each : ranks)
        each.hear(common);
}

TEST(KnownMemory, IsWhatAllRanksBroughtToSuchCalls) {
    std::vector<KnownMemory> ranks(3);
    for (KnownMemory& each : ranks) {
        each.bring(Collective::allreduce, kLong, true);
        each.bring(Collective::allreduce, kShort, false);
        EXPECT_EQ(each.of(Collective::allreduce, kLong), CollMemory::unknown) << "nobody has told";
    }
    tell(ranks);
    for (const KnownMemory& each : ranks) {
        EXPECT_EQ(each.of(Collective::allreduce, kLong), CollMemory::device);
        EXPECT_EQ(each.of(Collective::allreduce, kShort), CollMemory::unknown) << "host memory";
        EXPECT_EQ(each.of(Collective::bcast, kLong), CollMemory::unknown) << "another operation";
    }
}

TEST(KnownMemory, OneRankThatBringsOtherMemoryIsEnoughToKnowNothing) {
    std::vector<KnownMemory> ranks(3);
    for (KnownMemory& each : ranks)
        each.bring(Collective::bcast, kLong, &each != &ranks[1]);
    tell(ranks);
    for (const KnownMemory& each : ranks)
        EXPECT_EQ(each.of(Collective::bcast, kLong), CollMemory::unknown);
    // Nor does a rank that brings this and that.
    for (KnownMemory& each : ranks) {
        each.bring(Collective::bcast, kLong, true);
        each.bring(Collective::bcast, kLong, false);
    }
    tell(ranks);
    EXPECT_EQ(ranks[0].of(Collective::bcast, kLong), CollMemory::unknown);
}

TEST(KnownMemory, StaysWhileNobodyMakesSuchCallsAndFollowsThemWhenTheyChange) {
    std::vector<KnownMemory> ranks(2);
    for (KnownMemory& each : ranks)
        each.bring(Collective::reduce, kLong, true);
    tell(ranks);
    tell(ranks);
    EXPECT_EQ(ranks[1].of(Collective::reduce, kLong), CollMemory::device);
    for (KnownMemory& each : ranks)
        each.bring(Collective::reduce, kLong, false);
    tell(ranks);
    EXPECT_EQ(ranks[1].of(Collective::reduce, kLong), CollMemory::unknown);
}

TEST(KnownMemory, RanksTellEachOtherEverMoreSeldomAndOnlyOnceItHasBegun) {
    KnownMemory known;
    for (int call = 0; call < 100; ++call)
        ASSERT_FALSE(known.due());
    known.begin();
    std::vector<int> told;
    for (int call = 1; call <= 100; ++call)
        if (known.due()) told.push_back(call);
    EXPECT_EQ(told, (std::vector<int>{3, 9, 27, 81}));
}

}  // namespace
}  // namespace gantry::coll
