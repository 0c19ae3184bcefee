// SPDX-License-Identifier: BSD-3-Clause
//
// Transfers (io/transfer.hpp) on a system that counts short, is interrupted, and fails at every call.
#include "io/fake/faulty_system.hpp"
#include "io/transfer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <numeric>

namespace gantry::io {
namespace {

using Call = FaultySystem::Call;

std::byte byte_of(std::size_t value) {
    return static_cast<std::byte>(value * 7 + value / 251);
}

// Segments with and without gaps, and the memory that they name, in another order than the file's.
struct Plan {
    std::vector<std::byte> memory;
    Transfer transfer;
    std::int64_t end = 0;

    Plan(unsigned seed, Direction direction) {
        std::mt19937 random(seed);
        transfer.direction = direction;
        const std::size_t number = 1 + random() % 40;
        std::vector<Bytes> sizes(number);
        Bytes all = 0;
        for (Bytes& each : sizes)
            all += each = 1 + random() % 50;
        memory.resize(all);
        for (std::size_t i = 0; i < all; ++i)
            memory[i] = byte_of(i);
        std::size_t back = all;
        for (const Bytes bytes : sizes) {
            back -= bytes;
            end += random() % 2 == 0 ? 0 : static_cast<std::int64_t>(random() % 30);
            transfer.segments.push_back({end, memory.data() + back, bytes});
            end += static_cast<std::int64_t>(bytes);
        }
    }
    // Whether the file holds what the memory has, in every segment that lies in front of `until`.
    bool agrees(const std::vector<std::byte>& file, std::int64_t until) const {
        for (const Segment& segment : transfer.segments)
            for (Bytes i = 0; i < segment.bytes; ++i) {
                const auto at = static_cast<std::size_t>(segment.offset) + i;
                if (static_cast<std::int64_t>(at) >= until) continue;
                if (at >= file.size() || file[at] != segment.memory[i]) return false;
            }
        return true;
    }
};

TEST(Transfer, ShortAndInterruptedCallsGoOn) {
    for (unsigned seed = 1; seed <= 200; ++seed) {
        SCOPED_TRACE(seed);
        FaultySystem system(seed);
        Plan plan(seed, Direction::write);
        carry_out(system, plan.transfer);
        EXPECT_EQ(plan.transfer.failed, 0);
        EXPECT_EQ(plan.transfer.moved, plan.transfer.bytes());
        EXPECT_TRUE(plan.agrees(system.file, plan.end));

        Plan back(seed, Direction::read);
        back.transfer.sieve = seed % 3 * 20;
        std::fill(back.memory.begin(), back.memory.end(), std::byte{});
        carry_out(system, back.transfer);
        EXPECT_EQ(back.transfer.moved, back.transfer.bytes());
        EXPECT_EQ(back.memory, plan.memory);
    }
}

TEST(Transfer, AReadEndsWhereTheFileDoes) {
    for (unsigned seed = 1; seed <= 200; ++seed) {
        SCOPED_TRACE(seed);
        FaultySystem system(seed);
        Plan plan(seed, Direction::read);
        std::mt19937 random(seed);
        system.file.resize(random() % static_cast<unsigned>(plan.end));
        for (std::size_t i = 0; i < system.file.size(); ++i)
            system.file[i] = byte_of(i);
        plan.transfer.sieve = seed % 3 * 20;
        const auto size = static_cast<std::int64_t>(system.file.size());
        Bytes expected = 0;
        for (const Segment& each : plan.transfer.segments)
            expected += static_cast<Bytes>(std::clamp<std::int64_t>(
                size - each.offset, 0, static_cast<std::int64_t>(each.bytes)));
        carry_out(system, plan.transfer);
        EXPECT_EQ(plan.transfer.failed, 0);
        EXPECT_EQ(plan.transfer.moved, expected);
        EXPECT_TRUE(plan.transfer.met_end);
        EXPECT_TRUE(plan.agrees(system.file, size));
    }
}

TEST(Transfer, AnErrorAtAnyCallIsToldWithItsPlace) {
    for (const Direction direction : {Direction::write, Direction::read}) {
        const Call kind = direction == Direction::write ? Call::write : Call::read;
        for (int at = 1;; ++at) {
            FaultySystem system(77);
            system.file.resize(10'000);
            system.faulty = kind;
            system.at = at;
            system.error = EIO;
            Plan plan(5, direction);
            carry_out(system, plan.transfer);
            if (system.calls_of(kind) < at) break;  // it came to its end before
            ASSERT_EQ(plan.transfer.failed, -EIO) << at;
            EXPECT_LT(plan.transfer.moved, plan.transfer.bytes());
            EXPECT_TRUE(plan.agrees(system.file, plan.transfer.failed_at)) << at;
            const Status told = outcome_of(plan.transfer, "the/file");
            EXPECT_EQ(told.error_class(), MPI_ERR_IO);
            EXPECT_NE(told.text().find("the/file"), std::string::npos);
            EXPECT_NE(told.text().find("EIO"), std::string::npos);
        }
    }
}

TEST(Transfer, AFullDiskIsNoSpace) {
    FaultySystem system(3);
    Plan plan(9, Direction::write);
    system.room = static_cast<std::size_t>(plan.end / 2);
    carry_out(system, plan.transfer);
    EXPECT_EQ(outcome_of(plan.transfer, "x").error_class(), MPI_ERR_NO_SPACE);
    EXPECT_TRUE(plan.agrees(system.file, plan.transfer.failed_at));
}

TEST(Transfer, WhatAdjoinsIsOneCall) {
    FaultySystem system;
    std::vector<std::byte> memory(1000);
    Transfer transfer;
    transfer.direction = Direction::write;
    for (int i = 0; i < 100; ++i)
        transfer.segments.push_back({i * 10, memory.data() + (99 - i) * 10, 10});
    carry_out(system, transfer);
    EXPECT_EQ(system.calls_of(Call::write), 1);
}

TEST(Transfer, ASievedReadIsOneCall) {
    FaultySystem system;
    system.file.resize(2000);
    std::vector<std::byte> memory(1000);
    Transfer transfer;
    transfer.sieve = 10;
    for (int i = 0; i < 100; ++i)
        transfer.segments.push_back({i * 20, memory.data() + i * 10, 10});
    carry_out(system, transfer);
    EXPECT_EQ(system.calls_of(Call::read), 1);
    EXPECT_EQ(transfer.moved, 1000u);
}

}  // namespace
}  // namespace gantry::io
