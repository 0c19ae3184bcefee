// SPDX-License-Identifier: BSD-3-Clause
//
// A descriptor of the node segment that is read while its owner posts it for one operation after the other.
#include "transfer/node_segment.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>

namespace gantry::transfer {
namespace {

constexpr std::size_t kDescriptor = 3;
constexpr std::uint64_t kEven = 10, kOdd = 11;  // keys, of even and odd serials
constexpr std::uint64_t kPosted = 300'000;

TEST(NodeDescriptor, HasTheSerialOfTheKeyThatIsAskedForWhateverItsOwnerDoesMeanwhile) {
    const auto page = std::make_unique<NodeSegmentPage>();
    std::atomic<bool> ended = false;
    std::thread owner([&] {
        for (std::uint64_t serial = 1; serial <= kPosted; ++serial) {
            withdraw_descriptor(*page, kDescriptor);
            post_descriptor(*page, kDescriptor, serial, serial % 2 == 0 ? kEven : kOdd);
        }
        ended = true;
    });
    std::uint64_t wrong = 0, last = 0;
    while (!ended) {
        const std::uint64_t serial = posted_serial(*page, kDescriptor, kEven);
        if (serial % 2 != 0 || (serial != 0 && serial < last)) ++wrong;
        if (serial != 0) last = serial;
    }
    owner.join();
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(posted_serial(*page, kDescriptor, kEven), kPosted);
    EXPECT_EQ(posted_serial(*page, kDescriptor, kOdd), 0u);
}

// The second descriptor may be seen in a look that passed the first one before that was posted.
TEST(NodeDescriptor, IsTheOldestOfItsKeyThoughTheNextOneIsPostedMeanwhile) {
    constexpr std::uint64_t kRounds = 50'000;
    const auto page = std::make_unique<NodeSegmentPage>();
    page->used = 2;
    std::atomic<std::uint64_t> read_up_to = 0;
    std::thread owner([&] {
        for (std::uint64_t serial = 1; serial < 2 * kRounds; serial += 2) {
            while (read_up_to < serial - 1)
                std::this_thread::yield();
            withdraw_descriptor(*page, 0);
            withdraw_descriptor(*page, 1);
            post_descriptor(*page, 0, serial, kEven);
            post_descriptor(*page, 1, serial + 1, kEven);
        }
    });
    std::array<std::uint64_t, kDescriptors> read = {};
    std::uint64_t wrong = 0;
    for (std::uint64_t next = 1; next <= 2 * kRounds; ++next) {
        PostedDescriptor found;
        // Where fewer processors than threads are free, the owner needs this one.
        for (int looks = 1; (found = oldest_posted(*page, kEven, read)).serial == 0; ++looks)
            if (looks % 64 == 0) std::this_thread::yield();
        if (found.serial != next) ++wrong;
        read[0] = read[1] = found.serial;
        if (found.serial % 2 == 0)
            next = found.serial;  // whatever was left out is not posted again
        read_up_to = found.serial;
    }
    owner.join();
    EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace gantry::transfer
