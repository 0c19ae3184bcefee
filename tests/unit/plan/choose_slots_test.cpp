// SPDX-License-Identifier: BSD-3-Clause
//
// What the planner promises about slots beside pageable host memory.
#include "device/machine_facts.hpp"
#include "questions.hpp"

#include <gtest/gtest.h>

#include <bit>

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
    Described with = two_gpus();
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

// Between 512 KiB and 1 MiB lies what is best for 4 MiB at PCIe 5's rate.
TEST(Choose, PiecesOfOneSizeAreNeverSlowerThanAnyPowerOfTwo) {
    auto without_ipc = facts(shared_memory(), h200(), h200());
    without_ipc.peer_access = false;
    int better = 0;
    for (const Bytes bytes : {kMiB, 3 * kMiB, 4 * kMiB, 5 * kMiB + 17, 16 * kMiB, 64 * kMiB}) {
        plan::Tuning tuning;
        tuning.ipc = false;
        const Question staged = verdict(bytes, MemoryKind::device, MemoryKind::device);
        const plan::Plan chosen = choose(staged, without_ipc, tuning).plan;
        ASSERT_EQ(chosen.protocol, Protocol::pipeline) << bytes;
        better += std::has_single_bit(chosen.chunk) ? 0 : 1;
        for (Bytes chunk = 128 * kKiB; chunk <= 4 * kMiB; chunk *= 2) {
            tuning.chunk = chunk;
            EXPECT_LE(chosen.expected, choose(staged, without_ipc, tuning).plan.expected)
                << bytes << " in pieces of " << chunk;
        }
    }
    EXPECT_GE(better, 2);
}

}  // namespace
}  // namespace gantry::test
