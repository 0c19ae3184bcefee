// SPDX-License-Identifier: BSD-3-Clause
#include "plan/window_ways.hpp"

#include <gtest/gtest.h>

namespace gantry::plan {
namespace {

using Verb = WindowQuestion::Verb;

const WindowFacts kFar{.keyed = true, .rdma_from = 32 * kKiB, .batch_bytes = 4 * kKiB};

TEST(WindowWays, WhatIsReachedHereIsDirect) {
    for (const Verb verb : {Verb::put, Verb::get, Verb::changes_items})
        EXPECT_EQ(window_way({.verb = verb, .bytes = kMiB}, {.direct = true}), WindowWay::direct);
}

TEST(WindowWays, LargePutsAndGetsGoStraightWhereThereIsAKey) {
    for (const Verb verb : {Verb::put, Verb::get}) {
        EXPECT_EQ(window_way({.verb = verb, .bytes = 32 * kKiB}, kFar), WindowWay::rdma);
        EXPECT_EQ(window_way({.verb = verb, .bytes = 32 * kKiB - 1}, kFar), WindowWay::message);
        WindowFacts no_key = kFar;
        no_key.keyed = false;
        EXPECT_EQ(window_way({.verb = verb, .bytes = kMiB}, no_key), WindowWay::message);
        EXPECT_EQ(window_way({.verb = verb, .bytes = kMiB, .one_run = false}, kFar),
                  WindowWay::message);
    }
    EXPECT_EQ(window_way({.verb = Verb::put, .bytes = kMiB, .origin_plain = false}, kFar),
              WindowWay::rdma);
    EXPECT_EQ(window_way({.verb = Verb::get, .bytes = kMiB, .origin_plain = false}, kFar),
              WindowWay::message);
}

TEST(WindowWays, GetsThatACardMakesGoStraightWhateverTheirSize) {
    WindowFacts card = kFar;
    card.gets = true;
    EXPECT_EQ(window_way({.verb = Verb::get, .bytes = 1}, card), WindowWay::rdma);
    EXPECT_EQ(window_way({.verb = Verb::put, .bytes = 1}, card), WindowWay::batch);
    EXPECT_EQ(window_way({.verb = Verb::get, .bytes = 1, .one_run = false}, card),
              WindowWay::message);
    EXPECT_EQ(window_way({.verb = Verb::get, .bytes = 1, .origin_plain = false}, card),
              WindowWay::message);
    card.rdma_from = 0;
    EXPECT_EQ(window_way({.verb = Verb::get, .bytes = kMiB}, card), WindowWay::message);
}

TEST(WindowWays, LargeOnesWithAnEndInDeviceMemoryThatNothingReachesGoByRendezvous) {
    WindowFacts device = kFar;
    device.keyed = false;
    device.on_device = true;
    device.rendezvous_from = 128 * kKiB;
    for (const Verb verb : {Verb::put, Verb::get})
        for (const bool one_run : {true, false}) {
            const auto way = [&](Bytes bytes, const WindowFacts& facts) {
                return window_way({.verb = verb, .bytes = bytes, .one_run = one_run}, facts);
            };
            EXPECT_EQ(way(128 * kKiB, device), WindowWay::rendezvous);
            EXPECT_EQ(way(128 * kKiB - 1, device), WindowWay::message);
            WindowFacts never = device;
            never.rendezvous_from = kGiB;
            EXPECT_EQ(way(kMiB, never), WindowWay::message);
            WindowFacts host = device;
            host.on_device = false;
            EXPECT_EQ(way(kMiB, host), WindowWay::message);
        }
    WindowFacts keyed = kFar;
    keyed.rendezvous_from = 128 * kKiB;
    EXPECT_EQ(
        window_way(
            {.verb = Verb::get, .bytes = kMiB, .origin_plain = false, .origin_on_device = true},
            keyed),
        WindowWay::rendezvous);
    // A part of a buffer is no message.
    EXPECT_EQ(window_way({.bytes = kMiB, .whole = false}, device), WindowWay::message);
    EXPECT_EQ(window_way({.verb = Verb::changes_items, .bytes = kMiB}, device), WindowWay::message);
    EXPECT_NE(window_sentence(1, device).find("go by rendezvous from 128 KiB on"),
              std::string::npos);
}

TEST(WindowWays, WhatCostsLessDecidesWhereTheUserDoesNot) {
    const WindowFacts device{.on_device = true};
    WindowQuestion question{.bytes = kMiB, .by_rendezvous = 99, .by_message = 100};
    EXPECT_EQ(window_way(question, device), WindowWay::rendezvous);
    question.by_rendezvous = 100;
    EXPECT_EQ(window_way(question, device), WindowWay::message);
}

TEST(WindowWays, PiecesOfMessagesFollowEachOtherAndAGetAsksFirst) {
    transport::PeerFacts peer;
    peer.message_latency = 10'000;
    peer.bytes_per_second = 1e9;
    device::GpuFacts gpu;
    gpu.pageable_latency = 7'000;
    gpu.pageable_bytes_per_second = 1e9;
    MessageQuestion question{.bytes = 1000, .piece = 1000, .source_on_device = true};
    const Nanoseconds one = message_time(question, peer, gpu);
    // The message, the flush and its answer; a copy at its bandwidth and one on the wire.
    EXPECT_EQ(one, 3 * 10'000 + 7'000 + 2 * 1000);
    question.bytes = 4000;
    // The slowest leg is the copy out of the device.
    EXPECT_EQ(message_time(question, peer, gpu), one + 3 * 8'000);
    question.bytes = 1000;
    question.verb = Verb::get;
    EXPECT_GT(message_time(question, peer, gpu), one);
    Plan large;
    large.expected = 5'000;
    EXPECT_GT(rendezvous_time(Verb::put, large, peer), large.expected + 10'000);
}

// It must not be executed twice, and puts are repeated when a rail fails.
TEST(WindowWays, WhatChangesItemsIsAlwaysAMessage) {
    for (const Bytes bytes : {Bytes{8}, kMiB})
        EXPECT_EQ(window_way({.verb = Verb::changes_items, .bytes = bytes}, kFar),
                  WindowWay::message);
}

TEST(WindowWays, SmallPutsShareAMessage) {
    EXPECT_EQ(window_way({.bytes = 8}, kFar), WindowWay::batch);
    EXPECT_EQ(window_way({.bytes = 512}, kFar), WindowWay::batch);
    EXPECT_EQ(window_way({.bytes = 513}, kFar), WindowWay::message);
    EXPECT_EQ(window_way({.verb = Verb::get, .bytes = 8}, kFar), WindowWay::message);
    WindowFacts none = kFar;
    none.batch_bytes = 0;
    EXPECT_EQ(window_way({.bytes = 8}, none), WindowWay::message);
}

TEST(WindowWays, TheSentenceSaysWhoHasToCallMpi) {
    EXPECT_NE(window_sentence(3, kFar).find("GANTRY_PROGRESS=thread"), std::string::npos);
    WindowFacts card = kFar;
    card.unattended = true;
    card.rails = 2;
    const std::string sentence = window_sentence(1, card);
    EXPECT_NE(sentence.find("over 2 rails"), std::string::npos) << sentence;
    EXPECT_NE(sentence.find("need no call of the target's"), std::string::npos) << sentence;
    EXPECT_EQ(sentence.find("GANTRY_PROGRESS"), std::string::npos) << sentence;
    EXPECT_NE(sentence.find("gets as puts of the target"), std::string::npos) << sentence;
    card.gets = true;
    EXPECT_NE(window_sentence(1, card).find("puts and gets by RDMA need no call"),
              std::string::npos);
}

TEST(WindowWays, ContiguousCopiesBetweenGpusShareLaunches) {
    const WindowCopyQuestion between{.bytes = 8, .on_devices = true, .between_gpus = true};
    EXPECT_EQ(window_copy(between), WindowCopy::fused);
    EXPECT_EQ(window_copy(
                  {.bytes = 256 * kKiB, .on_devices = true, .between_gpus = true, .others = true}),
              WindowCopy::with_others);
    EXPECT_EQ(
        window_copy(
            {.bytes = 256 * kKiB + 1, .on_devices = true, .between_gpus = true, .others = true}),
        WindowCopy::fused);
    WindowCopyQuestion other = between;
    other.bytes = 0;
    EXPECT_EQ(window_copy(other), WindowCopy::alone);
    other = between;
    other.contiguous = false;
    EXPECT_EQ(window_copy(other), WindowCopy::alone);
    other = between;
    other.on_devices = false;
    EXPECT_EQ(window_copy(other), WindowCopy::alone);
    other = between;
    other.between_gpus = false;
    EXPECT_EQ(window_copy(other), WindowCopy::alone);
}

TEST(WindowWays, AccumulatesAtDeviceMemoryAreKernelsUnlessTimeSlicesOrTheUserForbid) {
    device::GpuFacts gpu;
    for (const Bytes bytes : {Bytes{8}, kMiB}) {
        ChangeQuestion question{.bytes = bytes, .operand_there = true, .operand_on_device = true};
        EXPECT_EQ(change_place(gpu, question), ChangePlace::gpu) << bytes;
        EXPECT_EQ(change_place(gpu, question, "host"), ChangePlace::host) << bytes;
        gpu.queue_turn = 50 * kMillisecond;
        question.time_sliced = true;
        EXPECT_EQ(change_place(gpu, question), ChangePlace::host) << bytes;
        EXPECT_EQ(change_place(gpu, question, "gpu"), ChangePlace::gpu) << bytes;
        gpu.queue_turn = 0;
    }
}

}  // namespace
}  // namespace gantry::plan
