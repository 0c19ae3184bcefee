// SPDX-License-Identifier: BSD-3-Clause
//
// Two versions of Gantry on one node refuse each other before the first message.
#include "shm_world.hpp"

#include "transport/wire_version.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace gantry::transport::shm {
namespace {

TEST(ShmVersion, AMixedJobIsRefusedWithASentenceThatNamesBoth) {
    const auto store = std::make_shared<Store>();
    Rank first(0, 2, store), second(1, 2, store);
    ASSERT_TRUE(first.publish().ok());
    ASSERT_TRUE(second.publish().ok());
    SegmentName name;
    const std::string told = (*store)[{0, "shm"}];
    ASSERT_EQ(told.size(), sizeof name);
    std::memcpy(&name, told.data(), sizeof name);
    Result<Segment> node = Segment::open("gantry-node", name);
    ASSERT_TRUE(node.ok()) << node.status().text();
    Result<SegmentMapping> head = node->map(0, page_bytes());
    ASSERT_TRUE(head.ok());
    const std::uint32_t other = kWireVersion + 1;
    std::memcpy(head->address(), &other, sizeof other);
    const Status refused = second.open();
    EXPECT_EQ(refused.error_class(), MPI_ERR_OTHER);
    const std::string text(refused.text());
    EXPECT_NE(text.find(fmt::format("rank 0 speaks version {}", other)), text.npos) << text;
    EXPECT_NE(text.find(fmt::format("this rank version {}", kWireVersion)), text.npos) << text;
}

}  // namespace
}  // namespace gantry::transport::shm
