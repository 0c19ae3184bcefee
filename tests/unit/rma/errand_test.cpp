// SPDX-License-Identifier: BSD-3-Clause
//
// Errands: what an owner finds in its box, and who may take it.
#include "rma/errand.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

namespace gantry::rma {
namespace {

using Numbers = std::vector<std::int64_t>;

// Every third number of as many as there are.
const layout::Layout& every_third() {
    static const layout::Block number[] = {{0, sizeof(std::int64_t)}};
    static const layout::Layout layout = layout::listed_layout(3 * sizeof(std::int64_t), number);
    return layout;
}

Side side_of(Numbers& numbers, bool strided) {
    Side side;
    side.buffer.address = numbers.data();
    side.buffer.layout = &every_third();
    side.buffer.count = numbers.size() / 3;
    static const layout::Layout run = layout::contiguous_layout(sizeof(std::int64_t));
    if (!strided) side.buffer = {numbers.data(), numbers.size(), &run};
    return side;
}

struct Errand {
    ErrandBox box{};
    Errand(Verb verb, layout::Operation operation, const Side& there, Bytes first,
           const Numbers& operand) {
        EXPECT_TRUE(box.begin());
        box.verb = verb;
        box.operation = operation;
        box.element = layout::Element::int64;
        EXPECT_GT(box.name_rows(there, first, operand.size() * sizeof(std::int64_t)), 0u);
        std::memcpy(box.data, operand.data(), operand.size() * sizeof(std::int64_t));
        box.send();
    }
    Numbers run(std::size_t count) {
        EXPECT_TRUE(box.take());
        EXPECT_TRUE(box.carry_out().ok());
        box.finish();
        EXPECT_TRUE(box.is_done());
        Numbers found(count);
        if (count > 0) std::memcpy(found.data(), box.data, count * sizeof(std::int64_t));
        box.end();
        return found;
    }
};

Numbers counted(std::size_t count) {
    Numbers numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
}

TEST(Errand, PutsAndGetsBlocksAndNothingBetween) {
    for (const bool strided : {false, true}) {
        const std::size_t step = strided ? 3 : 1;
        Numbers memory = counted(30);
        // Of the data: the third to the sixth number.
        const Bytes first = 2 * sizeof(std::int64_t);
        Errand put(Verb::put, layout::Operation::replace, side_of(memory, strided), first,
                   {100, 101, 102, 103});
        put.run(0);
        for (std::size_t i = 0; i < memory.size(); ++i) {
            const bool hit = i % step == 0 && i / step >= 2 && i / step < 6;
            EXPECT_EQ(memory[i], static_cast<std::int64_t>(hit ? 98 + i / step : i)) << i;
        }
        Errand get(Verb::get, layout::Operation::no_op, side_of(memory, strided), first,
                   {0, 0, 0, 0});
        EXPECT_EQ(get.run(4), (Numbers{100, 101, 102, 103}));
    }
}

TEST(Errand, ChangesItemsAndTellsWhatWasThere) {
    for (const bool strided : {false, true}) {
        const std::size_t step = strided ? 3 : 1;
        Numbers memory = counted(12);
        const Side there = side_of(memory, strided);
        Errand sum(Verb::accumulate, layout::Operation::sum, there, 0, {10, 20, 30});
        sum.run(0);
        EXPECT_EQ(memory[step], static_cast<std::int64_t>(20 + step));
        Errand fetch(Verb::fetch, layout::Operation::sum, there, 0, {1, 1, 1});
        EXPECT_EQ(fetch.run(3), (Numbers{10, static_cast<std::int64_t>(20 + step),
                                         static_cast<std::int64_t>(30 + 2 * step)}));
        EXPECT_EQ(memory[0], 11);
        Errand read(Verb::fetch, layout::Operation::no_op, there, 0, {0});
        EXPECT_EQ(read.run(1), Numbers{11});
        for (const std::int64_t expected : {7, 11}) {
            Errand swap(Verb::compare_and_swap, layout::Operation::replace, there, 0, {99});
            std::memcpy(swap.box.data + sizeof expected, &expected, sizeof expected);
            EXPECT_EQ(swap.run(1), Numbers{11});
            EXPECT_EQ(memory[0], expected == 11 ? 99 : 11);
        }
        EXPECT_EQ(memory[step + 1], static_cast<std::int64_t>(strided ? 4 : 33));
    }
}

TEST(Errand, IsTakenOnceOrTakenBack) {
    Numbers memory = counted(3);
    Errand errand(Verb::put, layout::Operation::replace, side_of(memory, false), 0, {5});
    EXPECT_FALSE(errand.box.begin()) << "another origin finds it in use";
    EXPECT_TRUE(errand.box.take_back());
    EXPECT_FALSE(errand.box.take()) << "nothing is left for the owner";
    EXPECT_TRUE(errand.box.begin());
    errand.box.send();
    EXPECT_TRUE(errand.box.take());
    EXPECT_FALSE(errand.box.take_back()) << "the owner is at it";
    errand.box.put_back();
    EXPECT_TRUE(errand.box.take());
}

TEST(Errand, WhatIsTooScatteredIsForOthers) {
    std::vector<layout::Block> blocks;
    for (std::ptrdiff_t i = 0; i < 60; ++i)
        blocks.push_back({i * i * 16, 8});
    const layout::Layout scattered = layout::listed_layout(60 * 60 * 16, blocks);
    Numbers memory(60 * 60 * 2);
    Side side;
    side.buffer = {memory.data(), 1, &scattered};
    ErrandBox box{};
    EXPECT_EQ(box.name_rows(side, 0, 60 * 8), 0u);
    EXPECT_EQ(box.name_rows(side, 0, 10 * 8), 10u);
}

}  // namespace
}  // namespace gantry::rma
