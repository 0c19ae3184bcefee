// SPDX-License-Identifier: BSD-3-Clause
//
// A message of a rank to itself: always a local copy, or two.
#include "questions.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::test {
namespace {

using device::MemoryKind;
using plan::CopyEngine;
using plan::Protocol;
using plan::Question;

TEST(Choose, AMessageToOneselfIsOneLocalCopy) {
    Described with = facts({}, h200(), h200());
    with.peer.self = true;
    const auto on_device = plan_for(verdict(kMiB, MemoryKind::device, MemoryKind::device), with);
    EXPECT_EQ(on_device.protocol, Protocol::self);
    EXPECT_EQ(on_device.sink_engine, CopyEngine::copy_engine);
    EXPECT_EQ(plan_for(verdict(8, MemoryKind::host, MemoryKind::host), with).sink_engine,
              CopyEngine::cpu);
}

TEST(Choose, AMessageToOneselfFromBlocksToBlocksIsPackedAndUnpacked) {
    Described with = facts({}, h200(), h200());
    with.peer.self = true;
    for (const MemoryKind kind : {MemoryKind::device, MemoryKind::host}) {
        Question question = verdict(kMiB, kind, kind);
        question.sink.contiguous = false;
        const auto unpacked = plan_for(question, with);
        EXPECT_EQ(describe(unpacked, kMiB).find("packed aside"), std::string::npos);
        question.source.contiguous = false;
        const auto both = plan_for(question, with);
        EXPECT_EQ(both.expected, 2 * unpacked.expected);
        EXPECT_THAT(describe(both, kMiB), testing::HasSubstr(", packed aside and unpacked by "));
    }
}

}  // namespace
}  // namespace gantry::test
