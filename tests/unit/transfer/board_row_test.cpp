// SPDX-License-Identifier: BSD-3-Clause
//
// A row of the board that is read while its owner posts it for one operation after the other.
#include "transfer/board.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

namespace gantry::transfer {
namespace {

constexpr std::size_t kRow = 3;
constexpr std::uint64_t kEven = 10, kOdd = 11;  // keys, of even and odd serials
constexpr std::uint64_t kPosted = 300'000;

TEST(BoardRow, HasTheSerialOfTheKeyThatIsAskedForWhateverItsOwnerDoesMeanwhile) {
    const auto page = std::make_unique<BoardPage>();
    std::atomic<bool> ended = false;
    std::thread owner([&] {
        for (std::uint64_t serial = 1; serial <= kPosted; ++serial) {
            withdraw_row(*page, kRow);
            post_row(*page, kRow, serial, serial % 2 == 0 ? kEven : kOdd);
        }
        ended = true;
    });
    std::uint64_t wrong = 0, last = 0;
    while (!ended) {
        const std::uint64_t serial = posted_serial(*page, kRow, kEven);
        if (serial % 2 != 0 || (serial != 0 && serial < last)) ++wrong;
        if (serial != 0) last = serial;
    }
    owner.join();
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(posted_serial(*page, kRow, kEven), kPosted);
    EXPECT_EQ(posted_serial(*page, kRow, kOdd), 0u);
}

}  // namespace
}  // namespace gantry::transfer
