// SPDX-License-Identifier: BSD-3-Clause
//
// BAR mappings (GDRCopy): small messages only, where they win, and nothing else
// changes.
#include "unit/plan/questions.hpp"

#include "plan/bar.hpp"

#include <gtest/gtest.h>

namespace gantry::test {
namespace {

using device::IpcKind;
using device::MemoryKind;
using plan::CopyEngine;
using plan::Protocol;

constexpr MemoryKind H = MemoryKind::host, D = MemoryKind::device;

Described facts_of_one_gpu() {
    Described with = facts(shared_memory(), h200(), h200());
    with.same_gpu = with.peer_access = true;
    return with;
}

Described with_mappings(Described facts, bool source, bool sink) {
    facts.source_bar = source;
    facts.sink_bar = sink;
    return facts;
}

TEST(ChooseBar, ASmallMessageIsReadAndWrittenByTheProcessors) {
    const Described facts = with_mappings(two_gpus(), true, true);
    const plan::Plan plan = plan_for(verdict(8, D, D, IpcKind::legacy), facts);
    EXPECT_EQ(plan.protocol, Protocol::eager);
    EXPECT_EQ(plan.source_engine, CopyEngine::bar);
    EXPECT_EQ(plan.sink_engine, CopyEngine::bar);
    const plan::Plan without = plan_for(verdict(8, D, D, IpcKind::legacy), two_gpus());
    EXPECT_EQ(without.protocol, Protocol::ipc);
    EXPECT_LT(3 * plan.expected, without.expected);
    EXPECT_EQ(plan::describe(plan, 8),
              "eager, read by cpu through a BAR mapping, then cpu through a BAR mapping (small "
              "enough for "
              "the processor to read it through its BAR mapping: sent at once)");
}

TEST(ChooseBar, TheOfferIsTheSame) {
    const Described facts = with_mappings(two_gpus(), true, false);
    const plan::Plan plan = plan_for(offer(8, D, IpcKind::legacy), facts);
    EXPECT_EQ(plan.protocol, Protocol::eager);
    EXPECT_EQ(plan.source_engine, CopyEngine::bar);
}

TEST(ChooseBar, WhatIsReadIsSmallAndWhatIsWrittenMayBeLarger) {
    const device::GpuFacts gpu = h200();
    EXPECT_TRUE(plan::bar_reads_win(gpu, 2048));
    EXPECT_FALSE(plan::bar_reads_win(gpu, 4096));
    EXPECT_TRUE(plan::bar_writes_win(gpu, 32 * kKiB));
    EXPECT_FALSE(plan::bar_writes_win(gpu, 128 * kKiB));
    const Described facts = with_mappings(two_gpus(), true, true);
    EXPECT_EQ(plan_for(verdict(4096, D, D, IpcKind::legacy), facts).protocol, Protocol::ipc);
    EXPECT_EQ(plan_for(verdict(16 * kKiB, H, D), facts).sink_engine, CopyEngine::bar);
}

TEST(ChooseBar, ASlowOneIsNotUsed) {
    Described facts = with_mappings(two_gpus(), true, true);
    facts.source_gpu.bar_read = facts.sink_gpu.bar_write = 20000;
    EXPECT_EQ(plan_for(verdict(8, D, D, IpcKind::legacy), facts).protocol, Protocol::ipc);
    EXPECT_EQ(plan_for(verdict(8, H, D), facts).sink_engine, CopyEngine::copy_engine);
}

TEST(ChooseBar, AtTheSinkAloneTheProcessorTakesThePieceOutOfItsSlot) {
    auto facts = with_mappings(facts_of_one_gpu(), false, true);
    const plan::Plan plan = plan_for(verdict(8, D, D, IpcKind::none), facts);
    EXPECT_EQ(plan.protocol, Protocol::pipeline);
    EXPECT_EQ(plan.source_engine, CopyEngine::copy_engine);
    EXPECT_EQ(plan.sink_engine, CopyEngine::bar);
    facts.sink_bar = false;
    EXPECT_LT(plan.expected + 5 * kMicrosecond,
              plan_for(verdict(8, D, D, IpcKind::none), facts).expected);
}

TEST(ChooseBar, ManagedAndStridedMemoryHaveNone) {
    const Described facts = with_mappings(two_gpus(), true, true);
    for (const bool strided : {false, true}) {
        plan::Question question =
            verdict(8, strided ? D : MemoryKind::managed, strided ? D : MemoryKind::managed);
        question.source.contiguous = question.sink.contiguous = !strided;
        const plan::Plan plan = plan_for(question, facts);
        EXPECT_FALSE(plan::uses_bar(plan)) << plan::describe(plan, 8);
    }
}

TEST(ChooseBar, WithoutOneNoPlanUsesIt) {
    for (const Scene& scene : scenes()) {
        Described facts = scene.facts;
        if (facts.source_bar || facts.sink_bar) continue;
        for (const MemoryKind source : {H, D})
            for (const MemoryKind sink : {H, D})
                for (const Bytes bytes : {Bytes{1}, Bytes{8}, kKiB, 64 * kKiB}) {
                    const plan::Question question = verdict(bytes, source, sink, scene.ipc);
                    EXPECT_FALSE(plan::uses_bar(plan_for(question, facts, scene.tuning)));
                }
    }
}

}  // namespace
}  // namespace gantry::test
