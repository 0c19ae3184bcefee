// SPDX-License-Identifier: BSD-3-Clause
//
// What a sender expects of the next message after the verdicts on those before it.
#include "p2p/destination_predictor.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace gantry::p2p {
namespace {

using device::MemoryKind;

constexpr Bytes kLarge = 256 * kKiB;

device::Location on_device(std::uint64_t buffer_id) {
    device::Location location;
    location.kind = MemoryKind::device;
    location.gpu = 0;
    location.buffer_id = buffer_id;
    return location;
}
plan::Plan staged_to(plan::CopyEngine engine) {
    return {.protocol = plan::Protocol::pipeline, .sink_engine = engine};
}
// The kind of sink that is expected; nothing: like the source.
std::optional<MemoryKind> expected(const DestinationPredictor& guess,
                                   const device::Location& source, Bytes bytes = kLarge) {
    plan::Question offer;
    offer.bytes = bytes;
    offer.source.kind = source.kind;
    guess.expect(source, offer);
    if (!offer.sink_expected) return std::nullopt;
    return offer.sink.kind;
}

TEST(DestinationPredictor, ExpectsNothingBeforeAVerdict) {
    const DestinationPredictor guess;
    EXPECT_EQ(expected(guess, on_device(1)), std::nullopt);
    EXPECT_EQ(expected(guess, {}), std::nullopt);
}

TEST(DestinationPredictor, RemembersForEachAllocationThatItWentToTheHost) {
    DestinationPredictor guess;
    guess.learn(on_device(1), kLarge, staged_to(plan::CopyEngine::cpu));
    EXPECT_EQ(expected(guess, on_device(1)), MemoryKind::host);
    EXPECT_EQ(expected(guess, on_device(2)), std::nullopt);
    guess.learn(on_device(1), kLarge, staged_to(plan::CopyEngine::copy_engine));
    EXPECT_EQ(expected(guess, on_device(1)), std::nullopt);
}

TEST(DestinationPredictor, ForgetsWhatTheReceiverReadsByItself) {
    DestinationPredictor guess;
    guess.learn(on_device(1), kLarge, staged_to(plan::CopyEngine::cpu));
    guess.learn_read(on_device(1));
    EXPECT_EQ(expected(guess, on_device(1)), std::nullopt);
}

TEST(DestinationPredictor, RemembersThatHostMemoryWentToADevice) {
    DestinationPredictor guess;
    guess.learn({}, kLarge, staged_to(plan::CopyEngine::copy_engine));
    EXPECT_EQ(expected(guess, {}), MemoryKind::device);
    guess.learn({}, kLarge, staged_to(plan::CopyEngine::cpu));
    EXPECT_EQ(expected(guess, {}), std::nullopt);
    guess.learn({}, kLarge, {.protocol = plan::Protocol::ipc, .executor = plan::Executor::sender});
    EXPECT_EQ(expected(guess, {}), MemoryKind::device);
}

TEST(DestinationPredictor, IsNotAskedForMessagesOfOnePiece) {
    DestinationPredictor guess;
    guess.learn({}, 8, staged_to(plan::CopyEngine::copy_engine));
    EXPECT_EQ(expected(guess, {}), std::nullopt);
    guess.learn({}, kLarge, staged_to(plan::CopyEngine::copy_engine));
    EXPECT_EQ(expected(guess, {}, 8), std::nullopt);
}

}  // namespace
}  // namespace gantry::p2p
