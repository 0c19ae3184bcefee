// SPDX-License-Identifier: BSD-3-Clause
//
// What the planner promises about slots beside pageable host memory.
#include "device/machine_facts.hpp"
#include "questions.hpp"

#include <gtest/gtest.h>

namespace gantry::test {
namespace {

using device::IpcKind;
using device::MemoryKind;
using plan::CopyEngine;
using plan::Protocol;
using plan::Question;

// A core copies to and from slots faster than the driver does by itself, also where the data is
// larger than the nearest caches.
TEST(Choose, OnAnH200PageableMemoryGoesThroughSlots) {
    Result<model::Machine> machine = model::load("h200");
    ASSERT_TRUE(machine.ok()) << machine.status().text();
    plan::Facts with = two_gpus();
    for (device::GpuFacts* gpu : {&with.source_gpu, &with.sink_gpu}) {
        const device::Uuid uuid = gpu->uuid;
        *gpu = device::gpu_facts(*machine);
        gpu->uuid = uuid;
    }
    for (const Bytes bytes : {256 * kKiB, kMiB, 4 * kMiB, 16 * kMiB}) {
        const Question down = verdict(bytes, MemoryKind::device, MemoryKind::host, IpcKind::legacy);
        const Question up = verdict(bytes, MemoryKind::host, MemoryKind::device, IpcKind::legacy);
        EXPECT_EQ(plan_for(down, with).protocol, Protocol::pipeline) << bytes;
        EXPECT_EQ(plan_for(up, with).protocol, Protocol::pipeline) << bytes;
    }
}

// Only the first piece is not hidden behind the processor's copies, which are the slowest leg.
TEST(Choose, AnOfferThatExpectsHostMemoryTakesSmallerPieces) {
    auto with = facts(shared_memory(), h200(), h200());
    Question unknown = offer(kMiB, MemoryKind::device);
    Question host = unknown;
    host.sink_expected = true;
    EXPECT_EQ(plan_for(host, with).sink_engine, CopyEngine::cpu);
    EXPECT_LT(plan_for(host, with).chunk, plan_for(unknown, with).chunk);
    EXPECT_GT(plan_for(host, with).ahead, 0);
}

}  // namespace
}  // namespace gantry::test
