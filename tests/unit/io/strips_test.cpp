// SPDX-License-Identifier: BSD-3-Clause
//
// Strips (io/strips.hpp): window by window the same bytes as the runs that they were made of.
#include "io/strips.hpp"

#include "layout/runs.hpp"

#include <gtest/gtest.h>

#include <random>

namespace gantry::io {
namespace {

TEST(Strips, EqualRunsAtEqualDistancesAreOne) {
    std::vector<Strip> strips;
    for (int i = 0; i < 1000; ++i)
        add_run(strips, 100 + i * 64, 8);
    ASSERT_EQ(strips.size(), 1u);
    EXPECT_EQ(strips[0], (Strip{100, 8, 1000, 64}));
}

TEST(Strips, WindowsHaveEveryByteOnce) {
    for (unsigned seed = 1; seed <= 300; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        std::vector<Strip> strips;
        std::vector<std::int64_t> bytes;
        std::int64_t at = static_cast<std::int64_t>(random() % 50);
        Bytes width = 1 + random() % 9;
        std::int64_t gap = 1 + static_cast<std::int64_t>(random() % 9);
        for (int run = 0; run < 60; ++run) {
            if (random() % 7 == 0) width = 1 + random() % 9;
            if (random() % 7 == 0) gap = 1 + static_cast<std::int64_t>(random() % 9);
            add_run(strips, at, width);
            for (Bytes i = 0; i < width; ++i)
                bytes.push_back(at + static_cast<std::int64_t>(i));
            at += static_cast<std::int64_t>(width) + gap;
        }
        StripReader reader(strips);
        std::vector<std::int64_t> seen, covered;
        const std::int64_t window = 1 + static_cast<std::int64_t>(random() % 40);
        for (std::int64_t begin = 0; begin < at; begin += window) {
            layout::FormBuilder builder;
            std::vector<Interval> intervals;
            const Bytes taken = reader.take(begin + window, begin, &builder, &intervals);
            const layout::Layout layout(builder.finish(), 0);
            ASSERT_EQ(layout.size, taken);
            layout::RunWalk runs(layout, 0, taken);
            for (layout::Block run; runs.next(run);)
                for (Bytes i = 0; i < run.bytes; ++i)
                    seen.push_back(begin + run.offset + static_cast<std::int64_t>(i));
            for (const Interval& each : merged(intervals, 0))
                for (std::int64_t byte = each.begin; byte < each.end; ++byte)
                    covered.push_back(byte);
            if (!seen.empty()) {
                EXPECT_LT(seen.back(), begin + window);
            }
        }
        EXPECT_EQ(seen, bytes);
        EXPECT_EQ(covered, bytes);
    }
}

TEST(Strips, IntervalsThatTouchOrLieCloseAreOne) {
    EXPECT_EQ(merged({{10, 20}, {0, 10}, {25, 30}, {12, 15}}, 0),
              (std::vector<Interval>{{0, 20}, {25, 30}}));
    EXPECT_EQ(merged({{10, 20}, {0, 10}, {25, 30}}, 5), (std::vector<Interval>{{0, 30}}));
}

}  // namespace
}  // namespace gantry::io
