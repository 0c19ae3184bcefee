// SPDX-License-Identifier: BSD-3-Clause
//
// Packed items and how they are combined, padded pairs among them; memory of another process.
#include "rma/items.hpp"

#include "base/process_memory.hpp"
#include "rma/process_memory.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace gantry::rma {
namespace {

using layout::Element;
using layout::Operation;

TEST(Items, EveryElementHasASize) {
    for (int element = 1; element < layout::kElements; ++element) {
        const Items items = items_of(static_cast<Element>(element));
        EXPECT_GT(items.size, 0u) << element;
        EXPECT_GE(items.extent, items.size) << element;
    }
    EXPECT_EQ(items_of(Element::double_int).size, 12u);
    EXPECT_EQ(items_of(Element::double_int).extent, 16u);
    EXPECT_EQ(items_of(Element::short_int).size, 6u);
    EXPECT_EQ(items_of(Element::short_int).extent, 8u);
}

template <class Value>
struct Packed {
    std::array<std::byte, 2 * (sizeof(Value) + sizeof(int))> bytes{};
    void set(std::size_t item, Value value, int index) {
        std::byte* const at = bytes.data() + item * (sizeof value + sizeof index);
        std::memcpy(at, &value, sizeof value);
        std::memcpy(at + sizeof value, &index, sizeof index);
    }
    std::pair<Value, int> of(std::size_t item) const {
        std::pair<Value, int> found;
        const std::byte* const at = bytes.data() + item * (sizeof(Value) + sizeof(int));
        std::memcpy(&found.first, at, sizeof found.first);
        std::memcpy(&found.second, at + sizeof found.first, sizeof found.second);
        return found;
    }
};

template <class Value>
void largest_wins(Element element) {
    Packed<Value> operand, target;
    operand.set(0, Value{5}, 70), target.set(0, Value{9}, 80);
    operand.set(1, Value{9}, 70), target.set(1, Value{9}, 80);
    ASSERT_TRUE(combine_packed(Operation::maxloc, items_of(element), operand.bytes.data(),
                               target.bytes.data(), target.bytes.size())
                    .ok());
    EXPECT_EQ(target.of(0), std::pair(Value{9}, 80));
    EXPECT_EQ(target.of(1), std::pair(Value{9}, 70));
}

TEST(Items, PairsWithPaddingAreCombinedWithoutIt) {
    largest_wins<double>(Element::double_int);
    largest_wins<short>(Element::short_int);
    largest_wins<long>(Element::long_int);
    largest_wins<float>(Element::float_int);
}

TEST(Items, ReplaceAndNoOpNeedNoItems) {
    const std::array<std::byte, 4> operand{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
    std::array<std::byte, 4> target{};
    ASSERT_TRUE(combine_packed(Operation::no_op, {}, nullptr, target.data(), 4).ok());
    EXPECT_EQ(target[0], std::byte{0});
    ASSERT_TRUE(combine_packed(Operation::replace, {}, operand.data(), target.data(), 4).ok());
    EXPECT_EQ(target, operand);
}

TEST(ProcessMemory, IsReadAndWrittenRunByRun) {
    if (!reaches(own_probe())) GTEST_SKIP() << "this system lets no process look into another";
    // More runs than one call takes.
    constexpr std::size_t kRuns = 3000;
    std::vector<std::uint32_t> memory(2 * kRuns, 0), packed(kRuns), back(kRuns, 0);
    for (std::size_t i = 0; i < kRuns; ++i)
        packed[i] = static_cast<std::uint32_t>(7 * i + 1);
    std::vector<layout::Block> blocks;
    for (std::size_t i = 0; i < kRuns; ++i)
        blocks.push_back({static_cast<std::ptrdiff_t>(8 * i), 4});
    const layout::Layout odd = layout::listed_layout(8 * kRuns, blocks);
    const transfer::Buffer buffer{memory.data(), 1, &odd};
    const int self = own_probe().process;
    ASSERT_TRUE(
        write_process(self, buffer, 0, 4 * kRuns, reinterpret_cast<const std::byte*>(packed.data()))
            .ok());
    EXPECT_EQ(memory[2 * 1500], packed[1500]);
    EXPECT_EQ(memory[2 * 1500 + 1], 0u);
    ASSERT_TRUE(
        read_process(self, buffer, 8, 4 * kRuns - 8, reinterpret_cast<std::byte*>(back.data()) + 8)
            .ok());
    EXPECT_EQ(back[0], 0u);
    EXPECT_EQ(back[2], packed[2]);
    EXPECT_EQ(back[kRuns - 1], packed[kRuns - 1]);
}

TEST(ProcessMemory, WhatIsNotThereIsAnError) {
    if (!reaches(own_probe())) GTEST_SKIP() << "this system lets no process look into another";
    std::byte one{};
    const transfer::Buffer nowhere{reinterpret_cast<void*>(64), 0, nullptr};
    const Status read = read_process(own_probe().process, nowhere, 0, 1, &one);
    ASSERT_FALSE(read.ok());
    EXPECT_NE(read.text().find("reading 1 bytes"), std::string_view::npos);
    Probe other = own_probe();
    ++other.number;
    EXPECT_FALSE(reaches(other));
}

}  // namespace
}  // namespace gantry::rma
