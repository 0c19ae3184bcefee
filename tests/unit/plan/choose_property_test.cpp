// SPDX-License-Identifier: BSD-3-Clause
//
// What holds for every question and every machine: a plan never needs what the facts deny, never
// holds more than its share of the pools, and a larger message is never expected to be faster.
// Machines and questions are drawn from a seed, which is printed.
#include "golden/scenes.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace gantry::test {
namespace {

using device::IpcKind;
using device::MemoryKind;
using plan::CopyEngine;
using plan::Executor;
using plan::Protocol;
using plan::Reach;
using plan::Stage;

class Dice {
  public:
    explicit Dice(std::uint64_t seed) : engine_(seed) {}
    std::uint64_t upto(std::uint64_t most) { return engine_() % (most + 1); }
    bool coin() { return (engine_() & 1) != 0; }
    double rate(double lowest, double highest) {
        return lowest * std::pow(highest / lowest, static_cast<double>(upto(1000)) / 1000);
    }
    Bytes size() { return upto(7) == 0 ? 0 : (Bytes{1} << upto(33)) + upto(1000); }

  private:
    std::mt19937_64 engine_;
};

device::GpuFacts any_gpu(Dice& dice) {
    device::GpuFacts gpu;
    gpu.d2h_bytes_per_second = dice.rate(1e9, 200e9);
    gpu.h2d_bytes_per_second = dice.rate(1e9, 200e9);
    gpu.d2d_bytes_per_second = dice.rate(50e9, 5e12);
    gpu.peer_bytes_per_second = dice.coin() ? dice.rate(5e9, 900e9) : 0;
    gpu.copy_latency = static_cast<Nanoseconds>(2000 + dice.upto(20000));
    gpu.chunk_cost = static_cast<Nanoseconds>(dice.upto(6000));
    gpu.queue_turn = static_cast<Nanoseconds>(dice.coin() ? dice.upto(200000) : 0);
    gpu.h2d_without_turn = dice.coin() ? 32 * kKiB : 0;
    gpu.pageable_without_turn = dice.coin() ? 128 * kKiB : 0;
    gpu.pageable_bytes_per_second = dice.rate(1e9, 20e9);
    return gpu;
}

Described any_facts(Dice& dice) {
    Described with;
    with.source_gpu = any_gpu(dice);
    with.sink_gpu = any_gpu(dice);
    with.sink_gpu.uuid[0] = 9;
    with.peer.self = dice.upto(9) == 0;
    with.peer.shared_memory = !with.peer.self && dice.coin();
    with.peer.put = !with.peer.self && !with.peer.shared_memory && dice.upto(3) != 0;
    const auto reach = [&dice] { return static_cast<Reach>(dice.upto(2)); };
    with.source_reach = reach();
    with.sink_reach = reach();
    if (dice.coin()) with.peer.device_read_bytes_per_second = 1e9;
    if (dice.coin()) with.peer.device_write_bytes_per_second = 4e9;
    with.peer.rails = static_cast<int>(1 + dice.upto(3));
    with.peer.eager_max = 4096 + dice.upto(65536);
    with.peer.bytes_per_second = dice.rate(0.1e9, 100e9);
    with.peer.message_latency = static_cast<Nanoseconds>(100 + dice.upto(10000));
    with.peer.put_cost = static_cast<Nanoseconds>(dice.upto(2000));
    with.same_gpu = with.peer.shared_memory && dice.coin();
    if (with.same_gpu) with.sink_gpu = with.source_gpu;
    with.peer_access = with.same_gpu || dice.coin();
    with.ipc_open = dice.coin();
    with.put_open = dice.coin();
    with.descriptor = dice.upto(3) != 0;
    with.uses = static_cast<int>(dice.upto(300));
    with.put_uses = static_cast<int>(dice.upto(300));
    with.receiver_busy = dice.coin();
    with.sender_busy = dice.coin();
    with.sender_opens = dice.upto(3) != 0;
    with.receiver_opens = dice.upto(3) != 0;
    with.last_user = static_cast<plan::GpuUser>(dice.upto(2));
    if (dice.coin()) {
        with.reads = dice.coin() ? plan::Reads::measured : plan::Reads::look;
        with.rates = {.slots = plan::step_of(dice.rate(0.1e9, 100e9), plan::kRateUnit),
                      .reads = plan::step_of(dice.rate(0.1e9, 100e9), plan::kRateUnit),
                      .call = plan::step_of(static_cast<double>(dice.upto(5000)), plan::kTimeUnit)};
    }
    return with;
}

plan::End any_end(Dice& dice) {
    plan::End result;
    result.kind = static_cast<MemoryKind>(dice.upto(3));
    if (result.kind == MemoryKind::device) result.ipc = static_cast<IpcKind>(dice.upto(3));
    result.contiguous = dice.upto(3) != 0;
    return result;
}

plan::Question any_question(Dice& dice) {
    plan::Question question{.bytes = dice.size(), .source = any_end(dice), .sink = {}};
    question.sink_known = dice.coin();
    if (question.sink_known) question.sink = any_end(dice);
    question.synchronous = dice.coin();
    question.eager_credit = dice.coin();
    return question;
}

plan::Tuning any_tuning(Dice& dice) {
    plan::Tuning tuning;
    tuning.eager_limit = dice.upto(128 * kKiB);
    if (dice.upto(3) == 0) tuning.chunk = 1 + dice.upto(8 * kMiB);
    if (dice.upto(3) == 0) tuning.depth = static_cast<int>(1 + dice.upto(100));
    tuning.ipc = dice.coin();
    tuning.ipc_threshold = dice.coin() ? dice.upto(kMiB) : 0;
    tuning.kernels = dice.coin();
    tuning.device_pool = kMiB << dice.upto(6);
    return tuning;
}

bool reached(const plan::End& end, Reach reach) {
    if (end.kind == MemoryKind::managed || reach == Reach::nothing) return false;
    return !end.on_device() || reach == Reach::device_memory;
}

bool copied_by_engine(const plan::End& end) {
    return end.kind == MemoryKind::device || end.kind == MemoryKind::managed;
}

// The rules that a plan must keep, whatever it costs.
void expect_possible(const plan::Question& question, const Described& with,
                     const plan::Tuning& tuning, const plan::Plan& plan) {
    const plan::End sink = question.sink_known ? question.sink : plan::End{};
    EXPECT_EQ(plan.protocol == Protocol::self, with.peer.self);
    EXPECT_STRNE(plan.why, "");
    EXPECT_GE(plan.rails, 1);
    EXPECT_LE(plan.rails, std::max(1, with.peer.rails));
    if (!tuning.kernels) {
        EXPECT_NE(plan.source_engine, CopyEngine::kernel);
        EXPECT_NE(plan.sink_engine, CopyEngine::kernel);
    }
    switch (plan.protocol) {
        case Protocol::self: break;
        case Protocol::eager:
            EXPECT_TRUE(question.bytes == 0 || !copied_by_engine(question.source) ||
                        (with.peer.put && !with.peer.shared_memory))
                << "inside a node the pipeline's slots take it with fewer copies";
            EXPECT_LE(question.bytes, std::min(tuning.eager_limit, with.peer.eager_max));
            EXPECT_TRUE(question.eager_credit);
            break;
        case Protocol::rdma:
            EXPECT_TRUE(with.peer.put);
            EXPECT_TRUE(question.source.contiguous && sink.contiguous);
            EXPECT_NE(question.source.kind, MemoryKind::managed);
            EXPECT_NE(sink.kind, MemoryKind::managed);
            EXPECT_TRUE(reached(question.source, with.source_reach));
            EXPECT_TRUE(!question.sink_known || reached(sink, with.sink_reach));
            break;
        case Protocol::cma:
            EXPECT_TRUE(with.peer.shared_memory);
            EXPECT_TRUE(with.reads == plan::Reads::measured || with.reads == plan::Reads::look);
            EXPECT_EQ(question.source.kind, MemoryKind::host);
            EXPECT_TRUE(!question.sink_known || sink.kind == MemoryKind::host);
            EXPECT_TRUE(question.source.contiguous && sink.contiguous);
            break;
        case Protocol::ipc: {
            EXPECT_TRUE(tuning.ipc && with.peer.shared_memory);
            EXPECT_GE(question.bytes, tuning.ipc_threshold);
            const bool gets = plan.executor == Executor::receiver;
            const bool asked_for = !question.source.contiguous && with.ipc_open;
            EXPECT_TRUE(gets || question.sink_known || asked_for)
                << "an offer cannot put into a sink it does not know";
            if (gets || question.sink_known) {
                EXPECT_NE((gets ? question.source : sink).ipc, IpcKind::none);
            }
            EXPECT_TRUE(gets ? with.receiver_opens : with.sender_opens);
            if (!question.source.contiguous || !sink.contiguous) {
                EXPECT_TRUE(tuning.kernels && question.source.on_device());
                EXPECT_TRUE(!question.sink_known || sink.on_device());
                EXPECT_EQ(gets, question.source.contiguous)
                    << "blocks are known to the process whose they are";
            }
            if (question.source.on_device() && sink.on_device()) {
                EXPECT_TRUE(with.same_gpu || with.peer_access);
            }
            break;
        }
        case Protocol::pipeline: {
            EXPECT_GE(plan.chunk, Bytes{1});
            EXPECT_GE(plan.depth, 1);
            EXPECT_LE(plan.depth, 64);
            const bool host_cells = with.peer.shared_memory && !copied_by_engine(question.source) &&
                                    !copied_by_engine(sink);
            if (question.sink_known || copied_by_engine(question.source)) {
                EXPECT_LE(plan.chunk * static_cast<Bytes>(plan.depth),
                          (host_cells ? tuning.host_pool : tuning.device_pool) / 4);
            }
            EXPECT_LE(plan.ahead, plan.depth);
            EXPECT_TRUE(plan.ahead == 0 ||
                        (!question.sink_known && plan.source_stage == Stage::slot));
            if (!with.peer.put) {
                EXPECT_EQ(plan.source_stage, Stage::slot);
                EXPECT_EQ(plan.sink_stage, Stage::slot);
            }
            if (!reached(question.source, with.source_reach)) {
                EXPECT_EQ(plan.source_stage, Stage::slot);
            }
            if (question.sink_known && !reached(sink, with.sink_reach)) {
                EXPECT_EQ(plan.sink_stage, Stage::slot);
            }
            break;
        }
    }
}

TEST(ChooseProperty, NoPlanNeedsWhatTheFactsDeny) {
    for (std::uint64_t seed = 1; seed <= 20000; ++seed) {
        SCOPED_TRACE(testing::Message() << "seed " << seed);
        Dice dice(seed);
        const auto with = any_facts(dice);
        const auto question = any_question(dice);
        const auto tuning = any_tuning(dice);
        const auto choice = choose(question, with, tuning);
        expect_possible(question, with, tuning, choice.plan);
        EXPECT_EQ(choice.rejected_count, 5) << "every other protocol lost for a reason";
        if (testing::Test::HasFailure()) {
            FAIL() << plan::describe(choice.plan, question.bytes);
        }
    }
}

TEST(ChooseProperty, AWinnerThatIsNotSettledIsTheCheapest) {
    for (std::uint64_t seed = 1; seed <= 5000; ++seed) {
        Dice dice(seed);
        const auto with = any_facts(dice);
        const auto question = any_question(dice);
        auto tuning = any_tuning(dice);
        tuning.ipc_threshold = 0;
        const auto choice = choose(question, with, tuning);
        if (choice.plan.protocol == Protocol::eager || choice.plan.protocol == Protocol::self ||
            choice.measures)
            continue;
        for (int i = 0; i < choice.rejected_count; ++i) {
            if (choice.rejected[i].expected != 0) {
                ASSERT_GE(choice.rejected[i].expected, choice.plan.expected) << "seed " << seed;
            }
        }
    }
}

// Its sender may be done: nothing else is possible any more, whatever limits are set.
TEST(ChooseProperty, WhatLiesInSlotsIsTakenFromThere) {
    for (std::uint64_t seed = 1; seed <= 5000; ++seed) {
        Dice dice(seed);
        auto with = any_facts(dice);
        auto question = any_question(dice);
        const auto tuning = any_tuning(dice);
        if (!with.peer.shared_memory || with.peer.self) continue;
        question.already_staged = question.sink_known = true;
        const auto choice = choose(question, with, tuning);
        ASSERT_EQ(choice.plan.protocol, Protocol::pipeline)
            << "seed " << seed << ": " << plan::describe(choice.plan, question.bytes);
    }
}

TEST(ChooseProperty, ALargerMessageIsNeverExpectedToBeFaster) {
    for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
        Dice dice(seed);
        auto with = any_facts(dice);
        with.ipc_open = with.put_open =
            true;             // the price of opening is charged to small messages only
        with.peer.rails = 1;  // a message is striped from some size up
        auto question = any_question(dice);
        plan::Tuning tuning;
        with.peer.eager_limit = 0;  // a promise, not a price
        Nanoseconds before = 0;
        for (Bytes bytes = 1; bytes <= kGiB; bytes += 1 + bytes / 3) {
            question.bytes = bytes;
            const auto plan = choose(question, with, tuning).plan;
            ASSERT_GE(plan.expected, before)
                << "seed " << seed << ", " << bytes << " bytes: " << plan::describe(plan, bytes);
            before = plan.expected;
        }
    }
}

}  // namespace
}  // namespace gantry::test
