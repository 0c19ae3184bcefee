// SPDX-License-Identifier: BSD-3-Clause
#include "transport/self/self.hpp"

#include "base/clock.hpp"
#include "unit/transport/shm_world.hpp"

#include <gtest/gtest.h>

namespace gantry::transport::self {
namespace {

class SelfTransportTest : public testing::Test {
  protected:
    void SetUp() override { ASSERT_TRUE(transport.open(job, notebook).ok()); }
    Status send(MessageKind kind, std::string_view header, std::string_view payload) {
        return transport.send(2, kind, std::as_bytes(std::span(header)),
                              std::as_bytes(std::span(payload)));
    }
    shm::LocalJob job{2, 3, std::make_shared<shm::Store>()};
    shm::Notebook notebook;
    SelfTransport transport{2};
};

TEST_F(SelfTransportTest, ReachesOnlyTheOwnRank) {
    EXPECT_TRUE(transport.reaches(2));
    EXPECT_FALSE(transport.reaches(1));
    EXPECT_TRUE(transport.facts(2).self);
}

TEST_F(SelfTransportTest, DeliversInOrderAndOnlyInProgress) {
    ASSERT_TRUE(send(1, "head", "payload").ok());
    ASSERT_TRUE(send(2, "", "").ok());
    ASSERT_TRUE(send(3, "h", std::string(5000, 'x')).ok());
    EXPECT_TRUE(notebook.messages.empty());
    EXPECT_EQ(transport.progress(), 3);
    ASSERT_EQ(notebook.messages.size(), 3u);
    EXPECT_EQ(notebook.messages[0].peer, 2);
    EXPECT_EQ(notebook.messages[0].header, "head");
    EXPECT_EQ(notebook.messages[0].payload, "payload");
    EXPECT_EQ(notebook.messages[1].kind, 2);
    EXPECT_EQ(notebook.messages[2].payload, std::string(5000, 'x'));
    EXPECT_EQ(transport.progress(), 0);
}

TEST_F(SelfTransportTest, AMessageSentByAHandlerComesInTheNextCall) {
    int handled = 0;
    notebook.on_arrival = [&](int, MessageKind, ConstSpan, ConstSpan) {
        if (++handled == 3) return;
        ASSERT_TRUE(send(1, "again", "").ok());
    };
    ASSERT_TRUE(send(1, "once", "").ok());
    EXPECT_EQ(transport.progress(), 1);
    EXPECT_EQ(handled, 1);
    EXPECT_EQ(transport.progress(), 1);
    EXPECT_EQ(transport.progress(), 1);
    EXPECT_EQ(transport.progress(), 0);
    EXPECT_EQ(handled, 3);
}

TEST_F(SelfTransportTest, SharesNothing) {
    EXPECT_EQ(transport.shared_segment(2), nullptr);
}

}  // namespace
}  // namespace gantry::transport::self
