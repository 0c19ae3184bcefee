// SPDX-License-Identifier: BSD-3-Clause
//
// Handles, constants and statuses of MPICH's ABI there and back, and the numbers of addresses.
#include "common/arguments.hpp"
#include "common/numbers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>
#include <vector>

namespace gantry::personality {
namespace {

template <class Handle>
void there_and_back() {
    std::set<unsigned> seen;
    for (const PredefinedHandle& row : Predefined<Handle>::rows) {
        const Handle ours = to<Handle>(static_cast<int>(row.theirs));
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(ours), row.ours);
        // Of two names for one type, one comes back.
        const auto back = static_cast<unsigned>(from(ours));
        EXPECT_TRUE(std::ranges::any_of(Predefined<Handle>::rows,
                                        [&](const PredefinedHandle& each) {
                                            return each.theirs == back && each.ours == row.ours;
                                        }))
            << std::hex << row.theirs;
        EXPECT_TRUE(seen.insert(detail::place(row.theirs)).second) << std::hex << row.theirs;
    }
}

TEST(Handles, EveryPredefinedOneIsMappedBothWays) {
    there_and_back<MPI_Comm>();
    there_and_back<MPI_Group>();
    there_and_back<MPI_Datatype>();
    there_and_back<MPI_Errhandler>();
    there_and_back<MPI_Op>();
    there_and_back<MPI_Info>();
    there_and_back<MPI_Win>();
    there_and_back<MPI_Session>();
    there_and_back<MPI_Request>();
    there_and_back<MPI_Message>();
}

TEST(Handles, WhatIsNoHandleBecomesNull) {
    for (const int garbage : {0, 1, -1, 0x4c009999, 0x44000002, 0x12345678})
        EXPECT_EQ(to<MPI_Datatype>(garbage), nullptr) << std::hex << garbage;
    // Handles of another kind.
    EXPECT_EQ(to<MPI_Comm>(0x4c000405), nullptr);
    long object = 0;
    EXPECT_EQ(to<MPI_Comm>(from(reinterpret_cast<MPI_Request>(&object))), nullptr);
}

TEST(Handles, ObjectsKeepTheirNumberAndFilesTheirAddress) {
    std::vector<long> objects(10000);
    std::set<int> handles;
    for (long& object : objects)
        handles.insert(from(reinterpret_cast<MPI_Comm>(&object)));
    EXPECT_EQ(handles.size(), objects.size());
    for (long& object : objects) {
        const auto comm = reinterpret_cast<MPI_Comm>(&object);
        EXPECT_EQ(to<MPI_Comm>(from(comm)), comm);
    }
    const auto file = reinterpret_cast<MPI_File>(objects.data());
    EXPECT_EQ(from(file), file);
    EXPECT_EQ(from(MPI_FILE_NULL), nullptr);
    EXPECT_EQ(to<MPI_File>(nullptr), MPI_FILE_NULL);
}

// Nothing is read there. The first address of all decides what is near.
char* far_address(std::size_t i) {
    static long first;
    numbers::number(&first);
    return reinterpret_cast<char*>(numbers::origin.load() + numbers::kNear + 64 * i);
}

TEST(Numbers, AddressesNearTheFirstAndFarFromItAreFoundAgain) {
    std::set<std::uint32_t> seen;
    for (std::size_t i = 1; i < 10000; ++i)
        for (char* address : {far_address(i), far_address(i) - numbers::kNear}) {
            const std::uint32_t number = numbers::number(address);
            EXPECT_TRUE(seen.insert(number).second);
            EXPECT_EQ(numbers::address(number), address);
            EXPECT_EQ((number & numbers::kSeen) != 0, address >= far_address(0));
            EXPECT_LT(number, 1u << numbers::kBits);
        }
}

TEST(Numbers, ThreadsAgreeOnTheNumberOfAnAddress) {
    constexpr std::size_t kObjects = 20000;
    std::vector<std::vector<std::uint32_t>> seen(4);
    std::vector<std::thread> threads;
    for (auto& numbers : seen)
        threads.emplace_back([&numbers] {
            for (std::size_t i = 0; i < kObjects; ++i)
                numbers.push_back(numbers::number(far_address(i)));
        });
    for (std::thread& thread : threads)
        thread.join();
    for (std::size_t i = 0; i < kObjects; ++i) {
        EXPECT_EQ(numbers::address(seen[0][i]), far_address(i));
        for (const auto& numbers : seen)
            EXPECT_EQ(numbers[i], seen[0][i]);
    }
}

TEST(Constants, RanksAndTagsThatNobodyKnowsAreRefused) {
    EXPECT_EQ(rank_to(3), 3);
    EXPECT_EQ(rank_to(-1), MPI_PROC_NULL);
    EXPECT_EQ(rank_to(-2), MPI_ANY_SOURCE);
    EXPECT_EQ(rank_to(-3), MPI_ROOT);
    EXPECT_EQ(rank_to(-4), kUnknown);
    EXPECT_EQ(tag_to(-1), MPI_ANY_TAG);
    EXPECT_EQ(tag_to(-2), kUnknown);
    EXPECT_EQ(rank_to(MPI_UNDEFINED), MPI_UNDEFINED);
    EXPECT_EQ(lock_type_to(MPI_LOCK_SHARED), kUnknown);
}

TEST(Constants, ErrorCodesOfTheProgramStayInOrderAboveTheLastPredefined) {
    EXPECT_EQ(error(MPI_ERR_TRUNCATE), 14);
    EXPECT_EQ(error_class_to(14), MPI_ERR_TRUNCATE);
    EXPECT_EQ(error_class_to(105), MPI_ERR_UNKNOWN);       // MPIX_ERR_NOREQ
    EXPECT_EQ(error_class_to(101), MPI_ERR_PROC_ABORTED);  // MPIX_ERR_PROC_FAILED, and MPICH's own
    EXPECT_EQ(error_class_to(76), MPI_ERR_PROC_ABORTED);
    EXPECT_EQ(error(MPI_ERR_PROC_ABORTED), 101);
    EXPECT_EQ(error_class_to(error(103)), 103);  // MPIX_ERR_REVOKED
    EXPECT_EQ(error_class_to(9999), -1);
    const int own = MPI_ERR_LASTCODE + 5;
    EXPECT_GT(error(own), 0x3fffffff);
    EXPECT_EQ(error_class_to(error(own)), own);
}

TEST(Statuses, HoldCountsOf62BitsAndWhetherCancelled) {
    MPI_Status ours{}, back{};
    const std::int64_t bytes = (std::int64_t{1} << 61) + 12345;
    std::memcpy(ours.MPI_internal, &bytes, sizeof bytes);
    ours.MPI_internal[2] = 1;
    theirs::Status theirs{};
    status_from(ours, theirs);
    status_to(theirs, back);
    EXPECT_EQ(std::memcmp(ours.MPI_internal, back.MPI_internal, sizeof ours.MPI_internal), 0);
}

TEST(Scratch, LongArraysUseTheThreadsBufferAgain) {
    const void* first = nullptr;
    {
        Scratch<int> numbers(1000);
        first = numbers.data();
        Scratch<int> inside(1000);
        EXPECT_NE(inside.data(), first);
    }
    Scratch<int> again(900);
    EXPECT_TRUE(again.ok());
    EXPECT_EQ(Scratch<int>(-5).count(), 0);
}

}  // namespace
}  // namespace gantry::personality
