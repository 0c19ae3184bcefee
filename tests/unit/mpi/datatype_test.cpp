// SPDX-License-Identifier: BSD-3-Clause
//
// Derived datatypes: bounds, blocks, contents.
#include "listed_blocks.hpp"
#include "running.hpp"

#include <array>

namespace gantry::mpi {
namespace {

using layout::Block;
using layout::blocks_of;

class Derived : public ::testing::Test {
  protected:
    Datatype& vector(MPI_Count count, MPI_Count length, MPI_Count stride,
                     MPI_Datatype of = MPI_INT) {
        MPI_Datatype handle;
        expect_ok(type_vector(count, length, stride, *find(of), &handle));
        return *find(handle);
    }
    Datatype& resized(MPI_Datatype of, MPI_Count lower_bound, MPI_Count extent) {
        MPI_Datatype handle;
        expect_ok(type_create_resized(*find(of), lower_bound, extent, &handle));
        return *find(handle);
    }
    // One of each type, at these displacements.
    Datatype& structure(std::vector<MPI_Count> displacements, std::vector<MPI_Datatype> types) {
        const std::vector<MPI_Count> lengths(types.size(), 1);
        MPI_Datatype handle;
        expect_ok(type_create_struct(static_cast<MPI_Count>(types.size()), lengths.data(),
                                     displacements.data(), types.data(), &handle));
        return *find(handle);
    }
};

TEST_F(Derived, VectorHasABlockPerStride) {
    const Datatype& datatype = vector(3, 2, 4);
    EXPECT_EQ(datatype.size(), 24u);
    EXPECT_EQ(datatype.extent(), 40);
    EXPECT_EQ(blocks_of(datatype.layout), (std::vector<Block>{{0, 8}, {16, 8}, {32, 8}}));
}

TEST_F(Derived, VectorWithoutGapsIsOneBlock) {
    EXPECT_TRUE(vector(3, 2, 2).layout.contiguous());
}

TEST_F(Derived, NegativeStrideMovesTheLowerBound) {
    const Datatype& datatype = vector(3, 1, -2);
    EXPECT_EQ(datatype.lower_bound, -16);
    EXPECT_EQ(datatype.extent(), 20);
    EXPECT_EQ(datatype.true_lower_bound, -16);
    EXPECT_EQ(blocks_of(datatype.layout), (std::vector<Block>{{0, 4}, {-8, 4}, {-16, 4}}));
}

TEST_F(Derived, StructEndsAtItsAlignment) {
    const std::array<MPI_Count, 2> lengths{1, 1}, displacements{0, 8};
    const std::array<MPI_Datatype, 2> types{MPI_DOUBLE, MPI_CHAR};
    MPI_Datatype handle;
    expect_ok(type_create_struct(2, lengths.data(), displacements.data(), types.data(), &handle));
    EXPECT_EQ(find(handle)->extent(), 16);
    EXPECT_EQ(find(handle)->true_extent, 9);
}

TEST_F(Derived, ResizedTypeKeepsItsDataAndChangesItsBounds) {
    MPI_Datatype handle;
    expect_ok(type_create_resized(vector(2, 1, 2), -4, 100, &handle));
    const Datatype& datatype = *find(handle);
    EXPECT_EQ(datatype.lower_bound, -4);
    EXPECT_EQ(datatype.extent(), 100);
    EXPECT_EQ(datatype.true_lower_bound, 0);
    EXPECT_EQ(datatype.true_extent, 12);
}

TEST_F(Derived, ExplicitBoundsAreNotPadded) {
    const MPI_Datatype six = resized(MPI_INT, 0, 6).handle;
    EXPECT_EQ(structure({0}, {six}).extent(), 6);
    EXPECT_EQ(structure({0, 6}, {six, six}).extent(), 12);
    EXPECT_EQ(structure({-3}, {resized(MPI_INT, -3, 9).handle}).lower_bound, -6);
}

TEST_F(Derived, ExplicitBoundsWinOverOtherMembers) {
    const Datatype& narrow = structure({0, 8}, {resized(MPI_INT, 0, 4).handle, MPI_DOUBLE});
    EXPECT_EQ(narrow.extent(), 4);
    EXPECT_EQ(narrow.true_extent, 16);
    const Datatype& wide = structure({0, 8}, {resized(MPI_INT, -3, 9).handle, MPI_CHAR});
    EXPECT_EQ(wide.lower_bound, -3);
    EXPECT_EQ(wide.extent(), 9);
    EXPECT_EQ(wide.size(), 5u);
}

TEST_F(Derived, ExplicitBoundsAreInherited) {
    MPI_Datatype pair, copy, part;
    expect_ok(type_contiguous(2, resized(MPI_INT, 0, 7), &pair));
    expect_ok(type_dup(*find(pair), &copy));
    EXPECT_EQ(structure({0}, {copy}).extent(), 14);
    const MPI_Count size = 5, length = 1, start = 1;
    expect_ok(
        type_create_subarray(1, &size, &length, &start, MPI_ORDER_C, *find(MPI_SHORT), &part));
    EXPECT_EQ(structure({0, 0}, {part, MPI_DOUBLE}).extent(), 10);
    MPI_Datatype plain;
    expect_ok(type_dup(structure({0, 8}, {MPI_DOUBLE, MPI_CHAR}), &plain));
    EXPECT_EQ(structure({0, 16}, {plain, MPI_CHAR}).extent(), 24) << "a copy of padded bounds";
}

TEST_F(Derived, ShiftedElementsWithoutGapsAreOneBlock) {
    const MPI_Count displacement = 3;
    MPI_Datatype shifted, row;
    expect_ok(type_create_hindexed_block(1, 1, &displacement, *find(MPI_INT), &shifted));
    expect_ok(type_contiguous(1000, *find(shifted), &row));
    EXPECT_EQ(blocks_of(find(row)->layout), (std::vector<Block>{{3, 4000}}));
    expect_ok(type_contiguous(2, vector(2, 1, 2, MPI_CHAR), &row));
    EXPECT_EQ(blocks_of(find(row)->layout), (std::vector<Block>{{0, 1}, {2, 2}, {5, 1}}));
}

TEST_F(Derived, ElementsWithoutDataCostNothing) {
    MPI_Datatype empty, many;
    expect_ok(type_contiguous(0, *find(MPI_INT), &empty));
    expect_ok(type_contiguous(MPI_Count{1} << 60, *find(empty), &many));
    EXPECT_TRUE(blocks_of(find(many)->layout).empty());
}

// 2^60 elements of 12 bytes each.
TEST_F(Derived, EveryConstructorSaysWhenItsSizeIsNoCount) {
    constexpr MPI_Count kMany = MPI_Count{1} << 60, kOne = 1, kZero = 0;
    Datatype& gaps = *find(MPI_DOUBLE_INT);
    const std::array<MPI_Datatype, 1> types{MPI_DOUBLE_INT};
    const int argument = MPI_DISTRIBUTE_DFLT_DARG, processes = 2;
    MPI_Datatype made = MPI_DATATYPE_NULL;
    const auto expect_refused = [&made](const Status& status) {
        expect_class(status, MPI_ERR_COUNT);
        EXPECT_EQ(made, MPI_DATATYPE_NULL);
    };
    expect_refused(type_contiguous(kMany, gaps, &made));
    expect_refused(type_vector(kMany, 1, 2, gaps, &made));
    expect_refused(type_create_hvector(kMany, 1, 2, gaps, &made));
    expect_refused(type_indexed(1, &kMany, &kZero, gaps, &made));
    expect_refused(type_create_hindexed(1, &kMany, &kZero, gaps, &made));
    expect_refused(type_create_indexed_block(1, kMany, &kZero, gaps, &made));
    expect_refused(type_create_hindexed_block(1, kMany, &kZero, gaps, &made));
    expect_refused(type_create_struct(1, &kMany, &kZero, types.data(), &made));
    expect_refused(type_create_subarray(1, &kMany, &kMany, &kZero, MPI_ORDER_C, gaps, &made));
    for (int distribution : {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC})
        expect_refused(type_create_darray(2, 0, 1, &kMany, &distribution, &argument, &processes,
                                          MPI_ORDER_C, gaps, &made));
    expect_ok(type_indexed(1, &kOne, &kZero, gaps, &made));
}

TEST_F(Derived, WhatReachesFurtherThanAnAddressIsRefused) {
    constexpr MPI_Count kFar = MPI_Count{1} << 62, kOne = 1, kZero = 0;
    Datatype& pair = *find(MPI_2INT);
    MPI_Datatype made = MPI_DATATYPE_NULL;
    const auto expect_refused = [&made](const Status& status) {
        expect_class(status, MPI_ERR_COUNT);
        EXPECT_EQ(made, MPI_DATATYPE_NULL);
    };
    expect_refused(type_vector(2, 1, kFar, pair, &made));
    expect_refused(type_vector(4, 1, -kFar / 8, pair, &made));
    expect_refused(type_create_hvector(3, 1, kFar, pair, &made));
    expect_refused(type_indexed(1, &kOne, &kFar, pair, &made));
    expect_refused(type_create_subarray(1, &kFar, &kOne, &kZero, MPI_ORDER_C, pair, &made));
    expect_ok(type_indexed(1, &kZero, &kFar, pair, &made));  // an empty block lies nowhere
    made = MPI_DATATYPE_NULL;
    const std::array<MPI_Count, 2> lengths{1, 1}, ends{-kFar - 8, kFar + 8};
    expect_refused(type_create_hindexed(2, lengths.data(), ends.data(), pair, &made));
}

// No memory holds lists of these.
TEST_F(Derived, RegularTypesTakeNoMemoryByTheBlock) {
    constexpr MPI_Count kMany = 3'000'000'000;
    MPI_Datatype made = MPI_DATATYPE_NULL;
    const auto parts = [&made] {
        return find(made)->pieces.size() + find(made)->layout.form->parts.size();
    };
    expect_ok(type_vector(kMany, 1, 2, *find(MPI_BYTE), &made));
    EXPECT_EQ(parts(), 2u);
    EXPECT_EQ(find(made)->size(), 3'000'000'000u);
    EXPECT_EQ(find(made)->true_extent, 5'999'999'999);
    const MPI_Datatype column = made;
    expect_ok(type_create_hvector(kMany / 10, 2, 3, *find(column), &made));
    EXPECT_EQ(parts(), 2u);
    expect_ok(type_create_resized(*find(column), -8, 1, &made));
    EXPECT_EQ(parts(), 2u);
    expect_ok(type_dup(*find(column), &made));
    EXPECT_EQ(parts(), 2u);
    expect_ok(type_contiguous(kMany, structure({4, 0}, {MPI_INT, MPI_SHORT}), &made));
    EXPECT_EQ(parts(), 2u);
    const std::array<MPI_Count, 3> sizes{100'000, 100'000, 100'000}, inside{99'998, 99'998, 99'998},
        starts{1, 1, 1};
    expect_ok(type_create_subarray(3, sizes.data(), inside.data(), starts.data(), MPI_ORDER_C,
                                   *find(MPI_DOUBLE), &made));
    EXPECT_EQ(parts(), 2u);
    const int distribution = MPI_DISTRIBUTE_CYCLIC, argument = MPI_DISTRIBUTE_DFLT_DARG,
              processes = 4;
    expect_ok(type_create_darray(4, 1, 1, &kMany, &distribution, &argument, &processes, MPI_ORDER_C,
                                 *find(MPI_INT), &made));
    EXPECT_EQ(parts(), 2u);
    EXPECT_EQ(find(made)->size(), 3'000'000'000u);
}

// An indexed type keeps what it is given, not what that stands for.
TEST_F(Derived, ListsOfRegularTypesTakeMemoryByTheEntry) {
    constexpr std::size_t kEntries = 1000;
    std::vector<MPI_Count> lengths(kEntries, 1), places;
    for (std::size_t i = 0; i < kEntries; ++i)
        places.push_back(static_cast<MPI_Count>(i * 3 + i * i % 3) * 4);
    MPI_Datatype made = MPI_DATATYPE_NULL;
    expect_ok(type_create_hindexed(kEntries, lengths.data(), places.data(),
                                   vector(1'000'000, 1, 100'000), &made));
    EXPECT_LE(find(made)->layout.form->parts.size(), kEntries);
    EXPECT_EQ(find(made)->size(), kEntries * 4'000'000u);
}

TEST_F(Derived, SubarrayInCOrderTakesRowsOfTheLastDimension) {
    const std::array<MPI_Count, 2> sizes{4, 6}, parts{2, 3}, starts{1, 2};
    MPI_Datatype handle;
    expect_ok(type_create_subarray(2, sizes.data(), parts.data(), starts.data(), MPI_ORDER_C,
                                   *find(MPI_INT), &handle));
    const Datatype& datatype = *find(handle);
    EXPECT_EQ(datatype.extent(), 96);
    EXPECT_EQ(blocks_of(datatype.layout), (std::vector<Block>{{4 * 8, 12}, {4 * 14, 12}}));
}

TEST_F(Derived, SubarrayInFortranOrderTakesColumnsOfTheFirst) {
    const std::array<MPI_Count, 2> sizes{4, 6}, parts{2, 3}, starts{1, 2};
    MPI_Datatype handle;
    expect_ok(type_create_subarray(2, sizes.data(), parts.data(), starts.data(), MPI_ORDER_FORTRAN,
                                   *find(MPI_INT), &handle));
    EXPECT_EQ(blocks_of(find(handle)->layout),
              (std::vector<Block>{{4 * 9, 8}, {4 * 13, 8}, {4 * 17, 8}}));
}

TEST_F(Derived, DistributedArrayPartsCoverTheArrayOnce) {
    const std::array<MPI_Count, 2> sizes{5, 7};
    const std::array<int, 2> distributions{MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC},
        arguments{MPI_DISTRIBUTE_DFLT_DARG, 2}, grid{2, 2};
    std::array<int, 35> owners{};
    for (int rank = 0; rank < 4; ++rank) {
        MPI_Datatype handle;
        expect_ok(type_create_darray(4, rank, 2, sizes.data(), distributions.data(),
                                     arguments.data(), grid.data(), MPI_ORDER_C, *find(MPI_INT),
                                     &handle));
        EXPECT_EQ(find(handle)->extent(), 35 * 4);
        for (const Block& block : blocks_of(find(handle)->layout))
            for (Bytes byte = 0; byte < block.bytes; byte += 4)
                ++owners[(static_cast<Bytes>(block.offset) + byte) / 4];
    }
    for (int times : owners)
        EXPECT_EQ(times, 1);
}

TEST_F(Derived, ContentsAreWhatTheConstructorWasGiven) {
    MPI_Count integers = 0, addresses = 0, large = 0, types = 0;
    int combiner = 0;
    Datatype& datatype = vector(3, 2, 4);
    expect_ok(type_get_envelope(datatype, &integers, &addresses, &large, &types, &combiner));
    EXPECT_EQ(std::tuple(integers, addresses, large, types, combiner),
              std::tuple(3, 0, 0, 1, MPI_COMBINER_VECTOR));
    std::array<int, 3> values{};
    MPI_Datatype inner = MPI_DATATYPE_NULL;
    expect_ok(type_get_contents(datatype, 3, 0, 0, 1, values.data(), nullptr, nullptr, &inner));
    EXPECT_EQ(values, (std::array<int, 3>{3, 2, 4}));
    EXPECT_EQ(inner, MPI_INT);
    expect_class(type_get_contents(datatype, 2, 0, 0, 1, values.data(), nullptr, nullptr, &inner),
                 MPI_ERR_ARG);
    expect_class(type_get_contents(*find(MPI_INT), 0, 0, 0, 0, nullptr, nullptr, nullptr, nullptr),
                 MPI_ERR_TYPE);
}

TEST_F(Derived, InnerTypeOutlivesItsHandle) {
    MPI_Datatype inner = vector(2, 1, 2).handle;
    MPI_Datatype outer;
    expect_ok(type_contiguous(2, *find(inner), &outer));
    const MPI_Datatype stale = inner;
    expect_ok(type_free(&inner));
    EXPECT_EQ(inner, MPI_DATATYPE_NULL);
    EXPECT_EQ(find(stale), nullptr);
    EXPECT_EQ(find(outer)->pieces[0].type->size(), 8u);
    MPI_Datatype again = MPI_DATATYPE_NULL;
    int count = 0;
    expect_ok(type_get_contents(*find(outer), 1, 0, 0, 1, &count, nullptr, nullptr, &again));
    EXPECT_EQ(again, stale) << "contents give a new handle to the same type";
    EXPECT_NE(find(stale), nullptr);
    expect_ok(type_free(&again));
    EXPECT_EQ(find(stale), nullptr);
}

TEST_F(Derived, ElementsCountTheItemsOfAPartlyFilledType) {
    const std::array<MPI_Count, 2> lengths{2, 1}, displacements{0, 8};
    const std::array<MPI_Datatype, 2> types{MPI_INT, MPI_DOUBLE};
    MPI_Datatype handle;
    expect_ok(type_create_struct(2, lengths.data(), displacements.data(), types.data(), &handle));
    Datatype& datatype = *find(handle);
    MPI_Status status{};
    MPI_Count count = 0;
    for (MPI_Count items = 0; items < 9; ++items) {
        expect_ok(status_set_elements(&status, datatype, items));
        expect_ok(get_elements(&status, datatype, &count));
        EXPECT_EQ(count, items);
        expect_ok(get_count(&status, datatype, &count));
        EXPECT_EQ(count, items % 3 == 0 ? items / 3 : MPI_UNDEFINED);
    }
}

TEST_F(Derived, PredefinedTypesCannotBeFreed) {
    MPI_Datatype handle = MPI_INT;
    expect_class(type_free(&handle), MPI_ERR_TYPE);
    EXPECT_EQ(handle, MPI_INT);
}

}  // namespace
}  // namespace gantry::mpi
