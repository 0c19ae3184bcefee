// SPDX-License-Identifier: BSD-3-Clause
//
// Atomic operations of the simulated network: applied where the word is, in the order of arrival.
#include "world/harness/programs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace gantry::world {
namespace {

using transport::AtomicOperation;

struct Shared {
    std::uint64_t word = 0;
    transport::Region region;
    transport::RemoteKey key;
    std::vector<std::uint64_t> seen;
};

Task<Status> add_many(Rank& rank, Shared& shared, int each) {
    transport::fake::FakeTransport& network = rank.world.network().end(rank.number);
    if (rank.number == 0) {
        Result<transport::Region> region =
            network.register_memory({.address = &shared.word, .bytes = sizeof shared.word});
        GANTRY_CO_TRY(region.status());
        shared.region = *region;
        shared.key = network.key(*region);
    }
    Status met = co_await meet(rank, 1);
    GANTRY_CO_TRY(met);
    for (int i = 0; rank.number != 0 && i < each; ++i) {
        std::uint64_t old = 0;
        const transport::AtomicOperands one{.width = 8, .operand = 1, .compare = 0};
        Completion done(rank.executor);
        network.atomic(0, AtomicOperation::fetch_add, one, shared.key, 0, &old, done);
        Status added = co_await done;
        GANTRY_CO_TRY(added);
        shared.seen.push_back(old);
    }
    met = co_await meet(rank, 2);
    if (rank.number == 0) network.release_memory(shared.region);
    co_return met;
}

TEST(FakeAtomics, OfManyRanksLoseNothing) {
    World world({.machine = "c2050-qdr", .ranks = 4, .jitter = 5 * kMicrosecond});
    Shared shared;
    const Ending ending = world.run([&shared](Rank& rank) { return add_many(rank, shared, 20); });
    ASSERT_TRUE(ending.good()) << ending;
    EXPECT_EQ(shared.word, 60u);
    std::ranges::sort(shared.seen);
    for (std::size_t i = 0; i < shared.seen.size(); ++i)
        EXPECT_EQ(shared.seen[i], i);
    EXPECT_EQ(world.network().atomics().messages, 60u);
}

Task<Status> one_each(Rank& rank, Shared& shared) {
    if (rank.number != 0) co_return success();
    transport::fake::FakeTransport& sink = rank.world.network().end(1);
    transport::fake::FakeTransport& network = rank.world.network().end(0);
    shared.word = 0xaaaa'bbbb'ffff'ffffu;
    Result<transport::Region> region =
        sink.register_memory({.address = &shared.word, .bytes = sizeof shared.word});
    GANTRY_CO_TRY(region.status());
    const transport::RemoteKey key = sink.key(*region);
    struct Step {
        AtomicOperation operation;
        transport::AtomicOperands operands;
        std::uint64_t old, after;
    };
    static constexpr Step kSteps[] = {
        {AtomicOperation::fetch_add, {4, 2, 0}, 0xffff'ffffu, 0xaaaa'bbbb'0000'0001u},
        {AtomicOperation::compare_swap, {4, 7, 2}, 1, 0xaaaa'bbbb'0000'0001u},
        {AtomicOperation::compare_swap, {4, 7, 1}, 1, 0xaaaa'bbbb'0000'0007u},
        {AtomicOperation::swap, {8, 5, 0}, 0xaaaa'bbbb'0000'0007u, 5},
    };
    for (const Step& step : kSteps) {
        std::uint64_t old = 0;
        Completion done(rank.executor);
        network.atomic(1, step.operation, step.operands, key, 0, &old, done);
        Status ended = co_await done;
        GANTRY_CO_TRY(ended);
        WORLD_CHECK(old == step.old && shared.word == step.after);
    }
    sink.release_memory(*region);
    std::uint64_t old = 0;
    Completion late(rank.executor);
    network.atomic(1, AtomicOperation::swap, kSteps[3].operands, key, 0, &old, late);
    Status ended = co_await late;
    WORLD_CHECK(ended.error_class() == MPI_ERR_RMA_ATTACH);
    co_return success();
}

TEST(FakeAtomics, AreThoseOfTheTransportInterface) {
    World world({.machine = "c2050-qdr"});
    Shared shared;
    const Ending ending = world.run([&shared](Rank& rank) { return one_each(rank, shared); });
    EXPECT_TRUE(ending.good()) << ending;
}

}  // namespace
}  // namespace gantry::world
