// SPDX-License-Identifier: BSD-3-Clause
//
// The table of reductions: which combinations are legal (MPI 5.0 section 6.9.2), and what they
// compute, at the edges too.
#include "layout/reduce.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

namespace gantry::layout {
namespace {

template <class T>
std::vector<T> reduced(Operation operation, Element element, std::vector<T> first,
                       std::vector<T> second) {
    const Reduction function = reduction(operation, element);
    EXPECT_NE(function, nullptr);
    if (function != nullptr) function(first.data(), second.data(), second.size());
    return second;
}

std::set<Operation> legal(Element element) {
    std::set<Operation> operations;
    for (int number = 0; number < kOperations; ++number)
        if (reduction(static_cast<Operation>(number), element) != nullptr)
            operations.insert(static_cast<Operation>(number));
    return operations;
}

const std::set<Operation> kMoves{Operation::replace, Operation::no_op};

std::set<Operation> with_moves(std::set<Operation> operations) {
    operations.insert(kMoves.begin(), kMoves.end());
    return operations;
}

TEST(Reduction, IntegersHaveEverythingButLocations) {
    const auto expected = with_moves(
        {Operation::sum, Operation::prod, Operation::min, Operation::max, Operation::band,
         Operation::bor, Operation::bxor, Operation::land, Operation::lor, Operation::lxor});
    for (Element element : {Element::int8, Element::int16, Element::int32, Element::int64,
                            Element::int128, Element::uint8, Element::uint16, Element::uint32,
                            Element::uint64, Element::address, Element::count, Element::offset})
        EXPECT_EQ(legal(element), expected) << "element " << static_cast<int>(element);
}

TEST(Reduction, RealsHaveNoBitwiseAndNoLogicalOperations) {
    const auto expected =
        with_moves({Operation::sum, Operation::prod, Operation::min, Operation::max});
    for (Element element : {Element::float16, Element::float32, Element::float64,
                            Element::long_double, Element::float128})
        EXPECT_EQ(legal(element), expected);
}

TEST(Reduction, ComplexNumbersHaveNoOrder) {
    for (Element element : {Element::complex64, Element::complex128, Element::complex_long_double,
                            Element::complex256})
        EXPECT_EQ(legal(element), with_moves({Operation::sum, Operation::prod}));
}

TEST(Reduction, BytesHaveBitwiseOperationsOnly) {
    EXPECT_EQ(legal(Element::byte), with_moves({Operation::band, Operation::bor, Operation::bxor}));
}

TEST(Reduction, TruthValuesHaveLogicalOperationsOnly) {
    for (Element element :
         {Element::boolean, Element::logical8, Element::logical32, Element::logical128})
        EXPECT_EQ(legal(element), with_moves({Operation::land, Operation::lor, Operation::lxor}));
}

TEST(Reduction, PairsHaveLocationsOnly) {
    for (int number = static_cast<int>(Element::float_int);
         number <= static_cast<int>(Element::integer_integer); ++number)
        EXPECT_EQ(legal(static_cast<Element>(number)),
                  with_moves({Operation::minloc, Operation::maxloc}));
}

TEST(Reduction, NothingIsLegalOnWhatIsNoElement) {
    EXPECT_TRUE(legal(Element::none).empty());
}

TEST(Reduction, SumOfSignedIntegersWrapsAround) {
    constexpr auto most = std::numeric_limits<std::int32_t>::max();
    EXPECT_EQ(reduced<std::int32_t>(Operation::sum, Element::int32, {most, -5}, {1, 2}),
              (std::vector<std::int32_t>{std::numeric_limits<std::int32_t>::min(), -3}));
    EXPECT_EQ(reduced<std::int8_t>(Operation::sum, Element::int8, {127}, {1}),
              (std::vector<std::int8_t>{-128}));
}

// Bits of halves: 1 is 3c00, 2 is 4000, the largest 7bff, infinity 7c00, the smallest 0001.
TEST(Reduction, NumbersOf16BitsAreRoundedToTheNearest) {
    using Bits = std::vector<std::uint16_t>;
    EXPECT_EQ(reduced<std::uint16_t>(Operation::sum, Element::float16,
                                     {0x3c00, 0x7bff, 0x0001, 0x8001, 0x6800, 0x6801, 0xc000},
                                     {0x4000, 0x7bff, 0x0001, 0x0001, 0x3c00, 0x3c00, 0x3c00}),
              (Bits{0x4200, 0x7c00, 0x0002, 0x0000, 0x6800, 0x6802, 0xbc00}));
    EXPECT_EQ(reduced<std::uint16_t>(Operation::prod, Element::float16, {0x3e00, 0x0400, 0xfc00},
                                     {0x4000, 0x3800, 0x4000}),
              (Bits{0x4200, 0x0200, 0xfc00}));  // 1.5 x 2, half of the smallest normal one
    EXPECT_EQ(reduced<std::uint16_t>(Operation::max, Element::float16, {0xc000, 0x3c00},
                                     {0xc200, 0x4000}),
              (Bits{0xc000, 0x4000}));
    for (unsigned bits = 0; bits < 0x7c00; ++bits) {  // every one and zero
        const auto each = static_cast<std::uint16_t>(bits);
        ASSERT_EQ(reduced<std::uint16_t>(Operation::sum, Element::float16, {0}, {each}),
                  (Bits{each}));
    }
}

TEST(Reduction, ProductOfShortUnsignedIntegersWrapsAround) {
    EXPECT_EQ(reduced<std::uint16_t>(Operation::prod, Element::uint16, {65535}, {65535}),
              (std::vector<std::uint16_t>{1}));
    EXPECT_EQ(reduced<std::int16_t>(Operation::prod, Element::int16, {-3}, {7}),
              (std::vector<std::int16_t>{-21}));
}

TEST(Reduction, MinimumAndMaximumKnowTheSign) {
    EXPECT_EQ(reduced<std::int8_t>(Operation::min, Element::int8, {-1, 5}, {1, 4}),
              (std::vector<std::int8_t>{-1, 4}));
    EXPECT_EQ(reduced<std::uint8_t>(Operation::min, Element::uint8, {255, 5}, {1, 4}),
              (std::vector<std::uint8_t>{1, 4}));
    EXPECT_EQ(reduced<double>(Operation::max, Element::float64, {-2.5, 3}, {-3.5, 2}),
              (std::vector<double>{-2.5, 3}));
}

TEST(Reduction, LogicalOperationsGiveZeroOrOne) {
    EXPECT_EQ(reduced<std::int32_t>(Operation::land, Element::int32, {4, 4, 0, 0}, {2, 0, 3, 0}),
              (std::vector<std::int32_t>{1, 0, 0, 0}));
    EXPECT_EQ(reduced<std::int32_t>(Operation::lor, Element::int32, {4, 4, 0, 0}, {2, 0, 3, 0}),
              (std::vector<std::int32_t>{1, 1, 1, 0}));
    EXPECT_EQ(reduced<std::int32_t>(Operation::lxor, Element::int32, {4, 4, 0, 0}, {2, 0, 3, 0}),
              (std::vector<std::int32_t>{0, 1, 1, 0}));
}

TEST(Reduction, ComplexProductIsTheComplexOne) {
    struct Complex {
        double real, imaginary;
        bool operator==(const Complex&) const = default;
    };
    EXPECT_EQ(reduced<Complex>(Operation::prod, Element::complex128, {{1, 2}}, {{3, 4}}),
              (std::vector<Complex>{{-5, 10}}));
}

struct DoubleInt {
    double value;
    int index;
    bool operator==(const DoubleInt& other) const {
        return value == other.value && index == other.index;
    }
};

TEST(Reduction, LocationOfEqualValuesIsTheLowerIndex) {
    EXPECT_EQ(reduced<DoubleInt>(Operation::maxloc, Element::double_int, {{7, 3}, {7, 1}, {1, 0}},
                                 {{7, 2}, {7, 5}, {2, 9}}),
              (std::vector<DoubleInt>{{7, 2}, {7, 1}, {2, 9}}));
    EXPECT_EQ(reduced<DoubleInt>(Operation::minloc, Element::double_int, {{7, 3}, {1, 0}},
                                 {{7, 2}, {2, 9}}),
              (std::vector<DoubleInt>{{7, 2}, {1, 0}}));
}

TEST(Reduction, ThePaddingBehindAPairIsNotTouched) {
    for (Operation operation : {Operation::maxloc, Operation::minloc, Operation::replace}) {
        DoubleInt first{7, 3}, second{5, 2};
        std::memset(reinterpret_cast<std::byte*>(&first) + 12, 1, 4);
        std::memset(reinterpret_cast<std::byte*>(&second) + 12, 2, 4);
        reduction(operation, Element::double_int)(&first, &second, 1);
        for (int i = 12; i < 16; ++i)
            EXPECT_EQ(reinterpret_cast<std::byte*>(&second)[i], std::byte{2});
    }
}

TEST(Reduction, ReplaceTakesTheFirstOperandAndNoOpKeepsTheSecond) {
    EXPECT_EQ(reduced<float>(Operation::replace, Element::float32, {1, 2}, {3, 4}),
              (std::vector<float>{1, 2}));
    EXPECT_EQ(reduced<float>(Operation::no_op, Element::float32, {1, 2}, {3, 4}),
              (std::vector<float>{3, 4}));
}

}  // namespace
}  // namespace gantry::layout
