// SPDX-License-Identifier: BSD-3-Clause
//
// When a receiver reads host memory of its node itself (plan/cma_candidate.cpp).
#include "unit/plan/questions.hpp"

#include <gtest/gtest.h>

namespace gantry::test {
namespace {

using device::MemoryKind;
using plan::Protocol;

// Slots at 12 GB/s; 1 MiB through them takes about 96 us.
Described measured_reads(double read_bytes_per_second) {
    auto with = facts(shared_memory(), h200(), h200());
    with.reads = plan::Reads::measured;
    with.rates = {.slots = plan::step_of(12e9, plan::kRateUnit),
                  .reads = plan::step_of(read_bytes_per_second, plan::kRateUnit),
                  .call = plan::step_of(500, plan::kTimeUnit)};
    return with;
}

TEST(Choose, HostMessagesAreReadByTheirReceiverWhereThatWasMeasuredFaster) {
    for (const bool known : {false, true}) {
        const auto question = known ? verdict(kMiB, MemoryKind::host, MemoryKind::host)
                                    : offer(kMiB, MemoryKind::host);
        EXPECT_EQ(plan_for(question, measured_reads(20e9)).protocol, Protocol::cma);
        EXPECT_EQ(plan_for(question, measured_reads(5e9)).protocol, Protocol::pipeline);
        auto with = measured_reads(20e9);
        with.reads = plan::Reads::trial;
        EXPECT_EQ(plan_for(question, with).protocol, Protocol::cma);
        for (const auto reads :
             {plan::Reads::not_offered, plan::Reads::refused, plan::Reads::unmeasured}) {
            with.reads = reads;
            EXPECT_EQ(plan_for(question, with).protocol, Protocol::pipeline);
        }
        plan::Tuning tuning;
        tuning.mechanisms.cma = false;
        EXPECT_EQ(plan_for(question, measured_reads(20e9), tuning).protocol, Protocol::pipeline);
    }
}

TEST(Choose, ALookGoesTheSlowerOfTheTwoWaysAndSaysSo) {
    for (const double reads : {5e9, 20e9}) {
        auto with = measured_reads(reads);
        const auto question = offer(kMiB, MemoryKind::host);
        const plan::Choice usual = choose(question, with, plan::Tuning{});
        with.reads = plan::Reads::look;
        const plan::Choice look = choose(question, with, plan::Tuning{});
        EXPECT_FALSE(usual.measures);
        EXPECT_TRUE(look.measures);
        EXPECT_NE(look.plan.protocol, usual.plan.protocol);
        EXPECT_GT(look.plan.expected, usual.plan.expected);
        EXPECT_EQ(look.plan.protocol == Protocol::cma, reads < 12e9);
    }
}

TEST(Choose, ALookIsNothingWhereThereIsOneWay) {
    auto with = measured_reads(20e9);
    with.reads = plan::Reads::look;
    const auto question = verdict(kMiB, MemoryKind::host, MemoryKind::device);
    EXPECT_FALSE(choose(question, with, plan::Tuning{}).measures);
}

TEST(Choose, WhatIsAwaitedIsReadBelowTheEagerLimitWhereThatTakesLess) {
    auto question = offer(16 * kKiB, MemoryKind::host);
    auto with = measured_reads(20e9);
    EXPECT_EQ(plan_for(question, with).protocol, Protocol::eager);
    question.awaited = true;
    with.rates.slots = plan::step_of(2e9, plan::kRateUnit);
    EXPECT_EQ(plan_for(question, with).protocol, Protocol::cma);
    with.rates.slots = plan::step_of(40e9, plan::kRateUnit);
    EXPECT_EQ(plan_for(question, with).protocol, Protocol::eager);
    with.reads = plan::Reads::look;
    EXPECT_EQ(plan_for(question, with).protocol, Protocol::cma);
    with.reads = plan::Reads::unmeasured;
    EXPECT_EQ(plan_for(question, with).protocol, Protocol::eager);
}

TEST(Choose, OnlyPageableContiguousMemoryIsReadByTheReceiver) {
    const auto with = measured_reads(1000e9);
    for (const auto source : {MemoryKind::host, MemoryKind::pinned, MemoryKind::device})
        for (const auto sink : {MemoryKind::host, MemoryKind::pinned, MemoryKind::device})
            EXPECT_EQ(plan_for(verdict(kMiB, source, sink), with).protocol == Protocol::cma,
                      source == MemoryKind::host && sink == MemoryKind::host);
    auto question = verdict(kMiB, MemoryKind::host, MemoryKind::host);
    question.sink.contiguous = false;
    EXPECT_EQ(plan_for(question, with).protocol, Protocol::pipeline);
    EXPECT_EQ(plan_for(verdict(8 * kKiB, MemoryKind::host, MemoryKind::host), with).protocol,
              Protocol::eager);
}

TEST(Choose, TheUsersCmaThresholdIsRespected) {
    plan::Tuning tuning;
    tuning.cma_threshold = 128 * kKiB;
    const auto with = measured_reads(1e9);
    const auto protocol = [&](Bytes bytes) {
        return plan_for(verdict(bytes, MemoryKind::host, MemoryKind::host), with, tuning).protocol;
    };
    EXPECT_EQ(protocol(128 * kKiB - 1), Protocol::pipeline);
    EXPECT_EQ(protocol(128 * kKiB), Protocol::cma);
}

}  // namespace
}  // namespace gantry::test
