// SPDX-License-Identifier: BSD-3-Clause
//
// How the end of a copy that is alone is seen: by a flag that the stream writes behind it, or by
// asking for its event. Which is sooner depends on the engine, and was measured.
#include "device/machine_facts.hpp"
#include "questions.hpp"

#include <gtest/gtest.h>

namespace gantry::test {
namespace {

using device::IpcKind;
using device::MemoryKind;
using plan::Completion;
using plan::Protocol;

constexpr MemoryKind D = MemoryKind::device, P = MemoryKind::pinned;

device::GpuFacts gpu_of(const char* machine) {
    const model::Machine described = model::load(machine).value();
    return device::gpu_facts(described);
}

Described with_gpus(Described with, const device::GpuFacts& gpu) {
    for (device::GpuFacts* each : {&with.source_gpu, &with.sink_gpu}) {
        const device::Uuid uuid = each->uuid;
        *each = gpu;
        each->uuid = uuid;
    }
    return with;
}

TEST(ChooseEnds, OfCopiesToAndFromHostMemoryAreSeenByFlags) {
    for (const char* machine : {"h100", "h200"}) {
        const Described facts = with_gpus(two_gpus(), gpu_of(machine));
        plan::Tuning staged;
        staged.ipc = false;
        for (const Bytes bytes : {8 * kKiB, 64 * kKiB, 256 * kKiB}) {
            SCOPED_TRACE(testing::Message() << machine << ", " << bytes << " bytes");
            const plan::Plan slots = plan_for(verdict(bytes, D, D), facts, staged);
            ASSERT_EQ(slots.protocol, Protocol::pipeline);
            EXPECT_EQ(slots.completion, Completion::flag);
            const plan::Plan direct = plan_for(verdict(bytes, D, P, IpcKind::legacy), facts);
            EXPECT_EQ(direct.completion, Completion::flag);
        }
        // The piece behind one whose end is a flag waits for it.
        const plan::Plan pieces = plan_for(verdict(16 * kMiB, D, D), facts, staged);
        ASSERT_LT(pieces.chunk, 16 * kMiB);
        EXPECT_EQ(pieces.completion, Completion::event);
    }
}

TEST(ChooseEnds, OfCopiesToAnotherGpuAreAskedFor) {
    const Described facts = with_gpus(two_gpus(), gpu_of("h200"));
    for (const Bytes bytes : {8 * kKiB, kMiB, 16 * kMiB}) {
        const plan::Plan direct = plan_for(verdict(bytes, D, D, IpcKind::legacy), facts);
        ASSERT_EQ(direct.protocol, Protocol::ipc);
        EXPECT_EQ(direct.completion, Completion::event) << bytes;
    }
}

// Its flag is seen by the receiver as well, and written while the bytes are on their way.
TEST(ChooseEnds, OfLargePutsAfterRtrAreToldByTheDevice) {
    for (const char* machine : {"h100", "h200"}) {
        Described facts = with_gpus(two_gpus(), gpu_of(machine));
        facts.rtr = facts.put_open = true;
        facts.sink_gpu.peer_get_more = 1000;
        for (const Bytes bytes : {8 * kKiB, 256 * kKiB, 512 * kKiB, 4 * kMiB}) {
            const plan::Plan put = plan_for(verdict(bytes, D, D, IpcKind::legacy), facts);
            ASSERT_EQ(put.executor, plan::Executor::sender);
            EXPECT_EQ(put.completion, bytes > 256 * kKiB ? Completion::flag : Completion::event)
                << machine << ", " << bytes << " bytes";
        }
    }
}

// A description from before the difference was known says one thing for all.
TEST(ChooseEnds, WithoutAFigureOfTheirOwnAreSeenAsThoseToAnotherGpu) {
    model::Machine described = model::load("h200").value();
    described.gpu.calls.host_event_seen = 0;
    const Described facts = with_gpus(two_gpus(), device::gpu_facts(described));
    plan::Tuning staged;
    staged.ipc = false;
    EXPECT_EQ(plan_for(verdict(64 * kKiB, D, D), facts, staged).completion, Completion::event);
}

}  // namespace
}  // namespace gantry::test
