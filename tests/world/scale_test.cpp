// SPDX-License-Identifier: BSD-3-Clause
//
// The applications' steps at scale, on described clusters: row 11 of the published figures, and what a
// rank sends, which is counted (`gantry scale` prints more).
#include "world/harness/collective_times.hpp"
#include "world/harness/halo.hpp"

#include <gtest/gtest.h>

namespace gantry::world {
namespace {

const Cluster& m2070() {
    return *find_cluster("m2070-qdr");
}

TEST(Scale, LbmOn64RanksIsAsMuchFasterThanTheUsersStagingAsWasReported) {
    const AppCase step{App::lbm, {512, 512, 512}, cube(64)};
    const HaloTimes staged = measure_halo(m2070(), step, Halo::staged);
    const HaloTimes ours = measure_halo(m2070(), step, Halo::datatypes);
    EXPECT_GE(ours.below(staged), 0.155);
    // 6 faces twice, and with the 12 edges: as in the original code.
    EXPECT_EQ(ours.messages, 30);
    // 8 values a cell of each face (128^2 cells) and 2 of each edge; and no more than a hundredth of that
    // around them.
    const double bytes = 8 * (6 * 8 * 128. * 128 + 12 * 2 * 128);
    EXPECT_GE(ours.bytes, bytes - 8 * 6 * 8 * 128);
    EXPECT_LE(ours.bytes, 1.01 * bytes);
}

TEST(Scale, EveryExchangeOfBothApplicationsEndsWithWhatWasSent) {
    for (const Cluster& cluster : clusters())
        for (const AppCase& step :
             {AppCase{App::lbm, {64, 64, 64}, cube(8)}, AppCase{App::lbm, {64, 64, 64}, {1, 1, 8}},
              AppCase{App::awp, {64, 64, 32}, {2, 4, 1}}})
            for (const Halo way : kHalos) {
                const HaloTimes times = measure_halo(cluster, step, way);
                EXPECT_GT(times.step, times.compute) << cluster.name << ", " << step.words();
            }
}

TEST(Scale, AnAllreduceOf64RanksSendsAMessageForEachDoubling) {
    const CollectiveTime time = measure_collective(m2070(), 64, Kind::allreduce, 8);
    EXPECT_LE(time.envelopes, 6.5);
}

}  // namespace
}  // namespace gantry::world
