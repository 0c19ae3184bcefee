// SPDX-License-Identifier: BSD-3-Clause
//
// What a sender remembers of its peer's ready-to-receive (RTR).
#include "p2p/ready_to_receive.hpp"

#include <gtest/gtest.h>

namespace gantry::p2p {
namespace {

wire::RtrSameBuffer receive(std::uint32_t sequence, std::uint64_t buffer_id) {
    wire::RtrSameBuffer ready{};
    ready.sequence = sequence;
    ready.buffer_id = buffer_id;
    return ready;
}

wire::Handle handle(std::uint64_t buffer_id) {
    device::IpcHandle exports;
    exports.kind = device::IpcKind::legacy;
    exports.buffer_id = buffer_id;
    return exports;
}

TEST(ReadyToReceive, AreForOneEnvelope) {
    ReadyToReceive known;
    const wire::Handle exports = handle(5);
    EXPECT_EQ(known.of(0), nullptr);
    EXPECT_TRUE(known.hear(receive(3, 5), &exports));
    EXPECT_NE(known.of(3), nullptr);
    EXPECT_EQ(known.of(2), nullptr);
    EXPECT_EQ(known.of(4), nullptr);
    EXPECT_EQ(known.handle().buffer_id, 5u);
}

TEST(ReadyToReceive, AnOlderOneThatComesLaterIsNotTaken) {
    ReadyToReceive known;
    const wire::Handle exports = handle(5);
    EXPECT_TRUE(known.hear(receive(0xffff'ffff, 5), &exports));
    EXPECT_TRUE(known.hear(receive(1, 5), nullptr)) << "numbers go round";
    EXPECT_FALSE(known.hear(receive(0, 5), nullptr));
    EXPECT_NE(known.of(1), nullptr);
}

TEST(ReadyToReceive, TheShortFormOfAnAllocationThatWasNotNamedIsNotTaken) {
    ReadyToReceive known;
    const wire::Handle exports = handle(5);
    EXPECT_FALSE(known.hear(receive(1, 6), nullptr));
    EXPECT_TRUE(known.hear(receive(1, 5), &exports));
    EXPECT_FALSE(known.hear(receive(2, 6), nullptr));
    known.forget(5);
    EXPECT_EQ(known.of(1), nullptr);
    EXPECT_FALSE(known.hear(receive(3, 5), nullptr));
}

// Waiting in vain ends soon; a peer whose buffer is not mapped is not waited for all the time.
TEST(ReadyToReceive, AreWaitedForOnlyWhileThatLeadsToPuts) {
    ReadyToReceive known;
    EXPECT_FALSE(known.worth_looking());
    known.came_late();
    int looks = 0;
    for (; known.worth_looking(); ++looks)
        known.looked();
    EXPECT_EQ(looks, 8);
    known.came_late();
    for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE(known.worth_looking());
        known.looked();
        known.put_made();
    }
}

TEST(ReadyToReceive, CountWhatCouldNotBeUsedByAllocation) {
    ReadyToReceive known;
    EXPECT_EQ(known.unused(5), 1);
    EXPECT_EQ(known.unused(5), 2);
    EXPECT_EQ(known.unused(6), 1);
    known.opened(5);
    EXPECT_EQ(known.unused(5), 1);
    EXPECT_EQ(known.unused(6), 2);
}

}  // namespace
}  // namespace gantry::p2p
