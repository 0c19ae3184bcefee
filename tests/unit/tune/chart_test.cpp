// SPDX-License-Identifier: BSD-3-Clause
//
// The chart of `gantry tune`, drawn of curves that are computed, not measured.
#include "tools/gantry/tune/tune.hpp"

#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <utility>
#include <vector>

namespace gantry::tool {
namespace {

// Copies that take so long, and as much longer as their bytes need.
CopyCurve curve(std::string name, double latency_ns, double bytes_per_second) {
    CopyCurve drawn{std::move(name), {}};
    for (Bytes bytes = 8; bytes <= 64 * kMiB; bytes *= 2)
        drawn.time_ns.emplace_back(
            bytes, latency_ns + static_cast<double>(bytes) / bytes_per_second * 1e9);
    return drawn;
}

struct Mark {
    std::string winner, loser;
    double kib = 0;
};

std::vector<Mark> marks_of(const std::string& svg) {
    const std::regex sentence(">([^<>]+) beats ([^<>]+) from ([0-9.]+) (B|KiB|MiB) on<");
    std::vector<Mark> marks;
    for (std::sregex_iterator each(svg.begin(), svg.end(), sentence), end; each != end; ++each) {
        const std::string unit = (*each)[4];
        const double factor = unit == "B" ? 1.0 / 1024 : unit == "KiB" ? 1 : 1024;
        marks.push_back({(*each)[1], (*each)[2], std::stod((*each)[3]) * factor});
    }
    return marks;
}

TEST(Chart, MarksWhereOneKindOfCopyOvertakesAnother) {
    // Pageable copies begin sooner here and are slower.
    const std::vector<Mark> marks = marks_of(chart(
        {},
        {curve("host to device", 800e3, 0.7e9), curve("pageable host to device", 300e3, 0.15e9),
         curve("device to host", 600e3, 0.5e9), curve("device to pageable host", 200e3, 0.2e9)}));
    ASSERT_EQ(marks.size(), 2u);
    EXPECT_EQ(marks[0].winner, "host to device");
    EXPECT_EQ(marks[0].loser, "pageable host to device");
    EXPECT_EQ(marks[1].winner, "device to host");
    EXPECT_EQ(marks[1].loser, "device to pageable host");
    // 500 us at 1 / (1 / 0.15 - 1 / 0.7) GB/s, 400 us likewise, and 5 % more to be worth a mark.
    EXPECT_NEAR(marks[0].kib, 93, 20);
    EXPECT_NEAR(marks[1].kib, 130, 26);
}

TEST(Chart, CopiesBetweenOtherEndsAreNoRivals) {
    EXPECT_TRUE(marks_of(chart({}, {curve("host to device", 800e3, 0.7e9),
                                    curve("device to host", 200e3, 0.2e9)}))
                    .empty());
}

TEST(Chart, DrawsEveryCurve) {
    const std::string svg =
        chart({}, {curve("host to device", 1e3, 1e9), curve("device to host", 2e3, 1e9)});
    std::size_t lines = 0;
    for (std::size_t at = svg.find("<polyline"); at != std::string::npos;
         at = svg.find("<polyline", at + 1))
        ++lines;
    EXPECT_EQ(lines, 2u);
}

}  // namespace
}  // namespace gantry::tool
