// SPDX-License-Identifier: BSD-3-Clause
//
// The order of one conversation, against rails that deliver early, late and twice.
#include "p2p/sequencer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <span>
#include <vector>

namespace gantry::p2p {
namespace {

constexpr transport::MessageKind kKind = 5;

transport::ConstSpan bytes_of(const wire::Envelope& envelope) {
    return std::as_bytes(std::span(&envelope, 1));
}

wire::Envelope envelope_with(std::uint32_t sequence) {
    wire::Envelope envelope{};
    envelope.sequence = sequence;
    envelope.bytes = sequence * 3u;
    return envelope;
}

TEST(Sequencer, TakesEnvelopesOnceAndInOrderHoweverTheyCome) {
    for (const unsigned seed : {1u, 2u, 3u}) {
        std::mt19937 random(seed);
        constexpr std::uint32_t kMessages = 1000;
        std::vector<std::uint32_t> coming;
        for (std::uint32_t i = 0; i < kMessages; ++i) {
            coming.push_back(i);
            if (random() % 4 == 0) coming.push_back(i);
        }
        for (std::size_t i = 0; i + 1 < coming.size(); ++i)  // rails are not far apart
            std::swap(coming[i],
                      coming[i + random() % std::min<std::size_t>(20, coming.size() - i)]);
        Sequencer sequencer;
        std::uint32_t taken = 0;
        for (const std::uint32_t sequence : coming) {
            const wire::Envelope envelope = envelope_with(sequence);
            const std::uint32_t payload = sequence ^ 77;
            sequencer.arrive(kKind, bytes_of(envelope), std::as_bytes(std::span(&payload, 1)),
                             [&](transport::MessageKind kind, transport::ConstSpan header,
                                 transport::ConstSpan data) {
                                 EXPECT_EQ(kind, kKind);
                                 wire::Envelope found;
                                 std::uint32_t content = 0;
                                 ASSERT_EQ(header.size(), sizeof found);
                                 ASSERT_EQ(data.size(), sizeof content);
                                 std::memcpy(&found, header.data(), sizeof found);
                                 std::memcpy(&content, data.data(), sizeof content);
                                 ASSERT_EQ(found.sequence, taken) << "seed " << seed;
                                 EXPECT_EQ(found.bytes, taken * 3u);
                                 EXPECT_EQ(content, taken ^ 77);
                                 ++taken;
                             });
        }
        EXPECT_EQ(taken, kMessages);
        EXPECT_EQ(sequencer.next_expected(), kMessages);
    }
}

TEST(Sequencer, ANumberThatDidNotLeaveIsGivenAgain) {
    Sequencer sequencer;
    EXPECT_EQ(sequencer.take_number(), 0u);
    EXPECT_EQ(sequencer.take_number(), 1u);
    sequencer.roll_back();
    EXPECT_EQ(sequencer.next_to_send(), 1u);
    EXPECT_EQ(sequencer.take_number(), 1u);
}

TEST(Sequencer, PartsOfAMessageWaitForItsRts) {
    Sequencer sequencer;
    const wire::Envelope first = envelope_with(1), second = envelope_with(2);
    EXPECT_TRUE(sequencer.park_follower(7, kKind, bytes_of(first), {}));
    EXPECT_TRUE(sequencer.park_follower(8, kKind, bytes_of(second), {}));
    EXPECT_TRUE(sequencer.park_follower(7, kKind, bytes_of(second), {}));
    sequencer.rts_taken(7);
    EXPECT_FALSE(sequencer.park_follower(7, kKind, bytes_of(first), {}));
    const std::vector<Sequencer::Parked> parts = sequencer.take_followers(7);
    ASSERT_EQ(parts.size(), 2u);
    const auto sequence_of = [](const Sequencer::Parked& part) {
        wire::Envelope envelope;
        std::memcpy(&envelope, part.header.data(), sizeof envelope);
        return envelope.sequence;
    };
    EXPECT_EQ(sequence_of(parts[0]), 1u);
    EXPECT_EQ(sequence_of(parts[1]), 2u);
    EXPECT_TRUE(sequencer.take_followers(7).empty());
    EXPECT_EQ(sequencer.take_followers(8).size(), 1u);
}

// Announced messages come in an order of their own.
TEST(Sequencer, AnAnnouncedMessageLetsNoOtherPartsPass) {
    Sequencer sequencer;
    const wire::Envelope part = envelope_with(1);
    sequencer.rts_taken(wire::kAnnounced | 9);
    EXPECT_TRUE(sequencer.park_follower(7, kKind, bytes_of(part), {}));
    EXPECT_FALSE(sequencer.park_follower(wire::kAnnounced | 8, kKind, bytes_of(part), {}));
    EXPECT_TRUE(sequencer.park_follower(wire::kAnnounced | 10, kKind, bytes_of(part), {}));
    sequencer.rts_taken(7);
    EXPECT_FALSE(sequencer.park_follower(7, kKind, bytes_of(part), {}));
    EXPECT_TRUE(sequencer.park_follower(wire::kAnnounced | 10, kKind, bytes_of(part), {}));
}

}  // namespace
}  // namespace gantry::p2p
