// SPDX-License-Identifier: BSD-3-Clause
//
// The table of messages that only wait to be read.
#include "p2p/sends_awaiting_fin.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace gantry::p2p {
namespace {

TEST(SendsAwaitingFin, GivesEachMessageBackOnce) {
    SendsAwaitingFin unread;
    Request request;
    EXPECT_TRUE(unread.empty());
    unread.add(7, request);
    EXPECT_FALSE(unread.empty());
    EXPECT_EQ(unread.take(8), nullptr);
    EXPECT_EQ(unread.take(7), &request);
    EXPECT_EQ(unread.take(7), nullptr);
    EXPECT_TRUE(unread.empty());
}

TEST(SendsAwaitingFin, AnIdWhosePlaceIsTakenHasNoRoom) {
    SendsAwaitingFin unread;
    Request first, other;
    unread.add(1, first);
    std::uint64_t id = 2;
    while (unread.has_room_for(id))
        ++id;
    EXPECT_EQ(unread.take(id), nullptr) << "it has the place of another one";
    EXPECT_EQ(unread.take(1), &first);
    EXPECT_TRUE(unread.has_room_for(id));
    unread.add(id, other);
    EXPECT_EQ(unread.take(1), nullptr);
    EXPECT_EQ(unread.take(id), &other);
}

TEST(SendsAwaitingFin, TellsThoseToOnePeerAndThoseToAll) {
    SendsAwaitingFin unread;
    Request requests[3];
    for (int i = 0; i < 3; ++i) {
        requests[i].peer = i % 2;
        unread.add(static_cast<std::uint64_t>(10 + i), requests[i]);
    }
    const auto sorted = [](std::vector<std::uint64_t> ids) {
        std::sort(ids.begin(), ids.end());
        return ids;
    };
    EXPECT_EQ(sorted(unread.to(0)), (std::vector<std::uint64_t>{10, 12}));
    EXPECT_EQ(sorted(unread.to(1)), (std::vector<std::uint64_t>{11}));
    EXPECT_EQ(sorted(unread.to(-1)), (std::vector<std::uint64_t>{10, 11, 12}));
}

}  // namespace
}  // namespace gantry::p2p
