// SPDX-License-Identifier: BSD-3-Clause
//
// Signatures worked out from parts against the sequences themselves.
#include "layout/signature.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace gantry::layout {
namespace {

using Items = std::vector<std::uint32_t>;  // marks, which are types, too

Signature item(std::uint32_t mark) {
    return signature_of_item(mark, static_cast<std::uint16_t>(mark + 1));
}

Signature plain(const Items& items) {
    Signature all;
    for (const std::uint32_t mark : items)
        all = joined(all, item(mark));
    return all;
}

// The first runs of equal items.
std::vector<std::pair<std::uint64_t, std::uint32_t>> runs_of(const Items& items) {
    std::vector<std::pair<std::uint64_t, std::uint32_t>> runs;
    for (const std::uint32_t mark : items) {
        if (runs.empty() || runs.back().second != mark) runs.emplace_back(0, mark);
        ++runs.back().first;
    }
    return runs;
}

struct Made {
    Signature signature;
    Items items;
};

Made made_at_random(std::mt19937& random, int depth) {
    const auto up_to = [&random](std::uint32_t most) {
        return std::uniform_int_distribution<std::uint32_t>(0, most)(random);
    };
    if (depth == 0) {
        const std::uint32_t mark = up_to(2);
        return {item(mark), {mark}};
    }
    Made made;
    const std::uint32_t parts = up_to(3);
    for (std::uint32_t i = 0; i < parts; ++i) {
        const Made part = made_at_random(random, depth - 1);
        const std::uint32_t times = up_to(4);
        made.signature = joined(made.signature, repeated(part.signature, times));
        for (std::uint32_t time = 0; time < times; ++time)
            made.items.insert(made.items.end(), part.items.begin(), part.items.end());
    }
    return made;
}

TEST(Signature, IsThatOfItsItemsHoweverTheyAreGrouped) {
    const unsigned seed = std::random_device{}();
    std::mt19937 random(seed);
    std::vector<Made> all;
    for (int i = 0; i < 300; ++i)
        all.push_back(made_at_random(random, 1 + i % 3));
    for (const Made& made : all) {
        EXPECT_EQ(made.signature, plain(made.items)) << "seed " << seed;
        for (const Made& other : all)
            EXPECT_EQ(made.signature == other.signature, made.items == other.items)
                << "seed " << seed;
    }
}

TEST(Signature, SaysWithWhichRunsItBegins) {
    const unsigned seed = std::random_device{}();
    std::mt19937 random(seed);
    for (int i = 0; i < 300; ++i) {
        const Made made = made_at_random(random, 1 + i % 3);
        const auto runs = runs_of(made.items);
        EXPECT_EQ(made.signature.is_described(), runs.size() <= 2) << "seed " << seed;
        for (std::size_t run = 0; run < 2; ++run) {
            const bool there = run < runs.size();
            EXPECT_EQ(made.signature.begins[run].count, there ? runs[run].first : 0u)
                << "seed " << seed;
            EXPECT_EQ(made.signature.begins[run].type, there ? runs[run].second + 1 : 0u)
                << "seed " << seed;
        }
    }
}

// Of equal items the hash of every count is another.
TEST(Signature, TellsLargeCountsApart) {
    const Bytes large = Bytes{1} << 60;
    for (const Bytes less : {Bytes{1}, Bytes{2}, Bytes{1} << 30, Bytes{1} << 59}) {
        Signature one = repeated(item(0), large), other = repeated(item(0), large - less);
        one.items = other.items = 0;
        EXPECT_NE(one, other) << less;
    }
    EXPECT_EQ(repeated(item(0), large), repeated(repeated(item(0), large / 16), 16));
    EXPECT_FALSE(repeated(item(0), large).is_described()) << "a run is 48 bits wide";
}

TEST(Signature, WithBytesMatchesAnything) {
    const Signature bytes = repeated(signature_of_byte(7), 4);
    EXPECT_TRUE(bytes.matches_anything());
    EXPECT_TRUE(joined(item(1), bytes).matches_anything());
    EXPECT_TRUE(joined(bytes, item(1)).matches_anything());
    EXPECT_FALSE(repeated(bytes, 0).matches_anything()) << "nothing is there";
    EXPECT_FALSE(item(0).matches_anything());
}

}  // namespace
}  // namespace gantry::layout
