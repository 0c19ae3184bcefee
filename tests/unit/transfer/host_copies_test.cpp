// SPDX-License-Identifier: BSD-3-Clause
//
// Two threads that share copies. Real threads: the thread sanitizer looks at these tests, too.
#include "transfer/host_copies.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <numeric>
#include <thread>
#include <vector>

namespace gantry::transfer {
namespace {

std::vector<std::byte> pattern(Bytes bytes) {
    std::vector<std::byte> data(bytes);
    for (Bytes i = 0; i < bytes; ++i)
        data[i] = static_cast<std::byte>(i * 31 + i / 251);
    return data;
}

struct Nobody final : CopyHelper {
    void call() override { ++calls; }
    int calls = 0;
};

// Copies everything in pieces of that size, as a protocol does: as many under way as there is room
// for, the rest by itself at once.
void copy_in_pieces(HostCopies& copies, Executor& executor, std::byte* to, const std::byte* from,
                    Bytes bytes, Bytes piece) {
    std::deque<Completion> pieces;
    for (Bytes at = 0; at < bytes; at += piece) {
        const HostCopies::Copy copy{to + at, from + at, std::min(piece, bytes - at)};
        pieces.emplace_back(executor);
        while (!copies.start(copy, pieces.back()))
            copies.progress();
    }
    for (Completion& each : pieces)
        while (!each.done())
            copies.progress();
}

class HostCopiesTest : public testing::Test {
  protected:
    SteadyClock clock_;
    Executor executor_{clock_};
    HostCopies copies_;
};

TEST_F(HostCopiesTest, WithoutAHelperThatComesTheEngineCopiesAll) {
    Nobody nobody;
    copies_.share_with(&nobody);
    const std::vector<std::byte> source = pattern(100001);
    std::vector<std::byte> sink(source.size());
    copy_in_pieces(copies_, executor_, sink.data(), source.data(), source.size(), 999);
    EXPECT_EQ(sink, source);
    EXPECT_EQ(copies_.counts().own, 101u);
    EXPECT_EQ(copies_.counts().helped, 0u);
    EXPECT_EQ(nobody.calls, 101);
}

TEST_F(HostCopiesTest, TheOldestPieceIsTakenFirst) {
    static Nobody nobody;
    copies_.share_with(&nobody);
    const std::byte from[2] = {std::byte{1}, std::byte{2}};
    std::byte to[2] = {};
    for (int round = 0; round < 40; ++round) {  // all around the cells
        Completion older(executor_), newer(executor_);
        ASSERT_TRUE(copies_.start({to, from, 1}, older));
        ASSERT_TRUE(copies_.start({to + 1, from + 1, 1}, newer));
        copies_.progress();
        EXPECT_TRUE(older.done());
        EXPECT_FALSE(newer.done());
        copies_.progress();
        EXPECT_TRUE(newer.done());
    }
}

TEST_F(HostCopiesTest, WhatTheHelperCopiedIsToldByTheEngine) {
    Nobody nobody;
    copies_.share_with(&nobody);
    const std::byte from{7};
    std::byte to{};
    Completion done(executor_);
    ASSERT_TRUE(copies_.start({&to, &from, 1}, done));
    EXPECT_TRUE(copies_.help());
    EXPECT_FALSE(copies_.help());
    EXPECT_EQ(to, from);
    EXPECT_FALSE(done.done());
    EXPECT_EQ(copies_.progress(), 1);
    EXPECT_TRUE(done.done());
    EXPECT_EQ(copies_.counts().helped, 1u);
}

TEST_F(HostCopiesTest, MoreThanThereIsRoomForIsRefused) {
    Nobody nobody;
    copies_.share_with(&nobody);
    std::byte from{}, to[64] = {};
    std::deque<Completion> started;
    do
        started.emplace_back(executor_);
    while (copies_.start({to + started.size() % 64, &from, 1}, started.back()));
    EXPECT_GT(started.size(), 8u);
    started.pop_back();
    while (copies_.progress() > 0) {
    }
    for (const Completion& each : started)
        EXPECT_TRUE(each.done());
}

// Neighbouring pieces of odd sizes share cache lines; the slots they go to are aligned or not.
TEST_F(HostCopiesTest, TwoThreadsCopyOddPiecesSideBySide) {
    Nobody nobody;
    copies_.share_with(&nobody);
    std::atomic<bool> over{false};
    std::thread helper([&] {
        while (!over.load(std::memory_order_relaxed))
            if (!copies_.help()) std::this_thread::yield();
    });
    std::uint64_t pieces = 0;
    for (const Bytes piece : {Bytes{1}, Bytes{63}, Bytes{64}, Bytes{1000}, Bytes{4099}}) {
        for (const Bytes misaligned : {Bytes{0}, Bytes{1}, Bytes{17}}) {
            const Bytes bytes = 300 * piece + piece / 2;
            const std::vector<std::byte> source = pattern(bytes + misaligned);
            std::vector<std::byte> sink(bytes + misaligned);
            copy_in_pieces(copies_, executor_, sink.data() + misaligned, source.data() + misaligned,
                           bytes, piece);
            EXPECT_TRUE(std::equal(sink.begin() + static_cast<std::ptrdiff_t>(misaligned),
                                   sink.end(),
                                   source.begin() + static_cast<std::ptrdiff_t>(misaligned)));
            pieces += divide_up(bytes, piece);
        }
    }
    over = true;
    helper.join();
    EXPECT_EQ(copies_.counts().own + copies_.counts().helped, pieces);
}

}  // namespace
}  // namespace gantry::transfer
