// SPDX-License-Identifier: BSD-3-Clause
//
// When the planner has a mapping of another process's device memory opened, and by whom.
#include "unit/plan/questions.hpp"

#include <gtest/gtest.h>

namespace gantry::test {
namespace {

using device::IpcKind;
using device::MemoryKind;
using plan::Executor;
using plan::Protocol;
using plan::Question;

Described two_anchored_gpus() {
    device::GpuFacts one = h200(), other = other_h200();
    for (device::GpuFacts* gpu : {&one, &other}) {
        gpu->ipc_open_peer = 100000;
        gpu->ipc_pair = 1900000;
        gpu->ipc_open_large = 9000000;
    }
    auto with = facts(shared_memory(), one, other);
    with.peer_access = true;
    return with;
}

TEST(ChooseOpenings, SmallMessagesDoNotPayForOpeningAMapping) {
    auto with = two_gpus();
    const Question question =
        verdict(4096, MemoryKind::device, MemoryKind::device, IpcKind::legacy);
    EXPECT_EQ(plan_for(question, with).protocol, Protocol::ipc);
    with.ipc_open = with.put_open = false;
    EXPECT_EQ(plan_for(question, with).protocol, Protocol::pipeline);
}

TEST(ChooseOpenings, AMappingIsOpenedWhenWhatWasStagedWouldHavePaidForIt) {
    for (const IpcKind kind : {IpcKind::legacy, IpcKind::vmm, IpcKind::pool}) {
        auto with = two_gpus();
        with.ipc_open = with.put_open = false;
        const Question question = verdict(4 * kMiB, MemoryKind::device, MemoryKind::device, kind);
        EXPECT_EQ(plan_for(question, with).protocol, Protocol::pipeline);
        with.uses = 200;  // 0.1 ms each; the dearest opening is 10 ms
        const auto get = plan_for(question, with);
        EXPECT_EQ(get.protocol, Protocol::ipc);
        EXPECT_EQ(get.executor, Executor::receiver);
        with.uses = 0;
        with.put_uses = 200;
        EXPECT_EQ(plan_for(question, with).executor, Executor::sender);
    }
}

TEST(ChooseOpenings, ACheapOneIsRiskedForAnAllocationThatComesAgain) {
    auto with = two_anchored_gpus();
    for (const Bytes bytes : {Bytes{1024}, 64 * kKiB, 1 * kMiB}) {
        const Question question =
            verdict(bytes, MemoryKind::device, MemoryKind::device, IpcKind::legacy);
        with.uses = with.put_uses = 0;
        EXPECT_NE(plan_for(question, with).protocol, Protocol::ipc) << bytes;
        with.uses = with.put_uses = 1;
        EXPECT_EQ(plan_for(question, with).protocol, Protocol::ipc) << bytes;
    }
}

TEST(ChooseOpenings, TheFirstOfAPairOfGpusCostsMore) {
    auto with = two_anchored_gpus();
    with.uses = with.put_uses = 2;
    const Question question =
        verdict(64 * kKiB, MemoryKind::device, MemoryKind::device, IpcKind::legacy);
    EXPECT_EQ(plan_for(question, with).protocol, Protocol::ipc);
    with.sender_first = true;
    EXPECT_EQ(plan_for(question, with).executor, Executor::receiver);
    with.receiver_first = true;
    EXPECT_NE(plan_for(question, with).protocol, Protocol::ipc);
    with.receiver_first = with.sender_first = false;
    with.source_large = with.sink_large = true;
    EXPECT_NE(plan_for(question, with).protocol, Protocol::ipc);
}

// Also of what was in slots before its receiver was known: most of what is staged is.
TEST(ChooseOpenings, AGpuThatIsKeptAwayIsNamedAsTheReason) {
    auto with = facts(shared_memory(), h200(), other_h200());
    with.kept_away = true;
    for (const bool already_staged : {false, true}) {
        Question question =
            verdict(64 * kKiB, MemoryKind::device, MemoryKind::device, IpcKind::legacy);
        question.already_staged = already_staged;
        const plan::Choice choice = choose(question, with, {});
        std::string why;
        for (const plan::Rejected& other : choice.rejected)
            if (other.protocol == Protocol::ipc && other.why != nullptr) why = other.why;
        EXPECT_NE(why.find("keeps the other rank's GPU from this process"), std::string::npos)
            << why;
    }
}

TEST(ChooseOpenings, AnOpeningThatWouldStallWorkCountsTwice) {
    auto with = two_gpus();
    with.ipc_open = false;
    with.sender_opens = false;
    const Question question =
        verdict(4 * kMiB, MemoryKind::device, MemoryKind::device, IpcKind::legacy);
    with.uses = 15;  // of 20 that it takes; 1 ms, the scene's price
    EXPECT_EQ(plan_for(question, with).protocol, Protocol::ipc);
    with.receiver_busy = true;
    EXPECT_EQ(plan_for(question, with).protocol, Protocol::pipeline);
    with.uses = 40;
    EXPECT_EQ(plan_for(question, with).protocol, Protocol::ipc);
}

TEST(ChooseOpenings, WorkThatIsPendingDoesNotDecideWhoOpens) {
    auto with = two_gpus();
    with.ipc_open = with.put_open = false;
    with.receiver_busy = true;
    const Question question =
        verdict(4 * kMiB, MemoryKind::device, MemoryKind::device, IpcKind::legacy);
    with.uses = with.put_uses = 15;  // enough for the sender, which is idle
    EXPECT_EQ(plan_for(question, with).protocol, Protocol::pipeline);
    with.uses = with.put_uses = 40;
    const auto get = plan_for(question, with);
    EXPECT_EQ(get.protocol, Protocol::ipc);
    EXPECT_EQ(get.executor, Executor::receiver);
    // Nothing else comes from that memory, and the sink is what repeats.
    with.uses = 0;
    EXPECT_EQ(plan_for(question, with).executor, Executor::sender);
}

TEST(ChooseOpenings, MemoryWhoseDescriptorHasNotComeIsStaged) {
    auto with = two_gpus();
    with.ipc_open = with.put_open = with.sender_opens = false;
    with.uses = 1000;
    with.descriptor = false;
    const Question question =
        verdict(4 * kMiB, MemoryKind::device, MemoryKind::device, IpcKind::vmm);
    EXPECT_EQ(plan_for(question, with).protocol, Protocol::pipeline);
    with.descriptor = true;
    EXPECT_EQ(plan_for(question, with).protocol, Protocol::ipc);
}

}  // namespace
}  // namespace gantry::test
