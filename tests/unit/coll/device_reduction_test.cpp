// SPDX-License-Identifier: BSD-3-Clause
//
// Reductions of vectors in device memory, by kernels: right on every rank, for ranks whose vectors lie
// in different kinds of memory, and with exact numbers of launches and of bytes through the host.
#include "coll/allreduce.hpp"
#include "coll/reduce.hpp"
#include "coll/reduce_scatter.hpp"
#include "coll/scan.hpp"
#include "collective_world.hpp"
#include "number_sum.hpp"

namespace gantry::coll {
namespace {

using model::Operation;

Number summand(int rank, std::size_t index) {
    return rank * 1000 + static_cast<Number>(index);
}
// Of ranks 0 to before `end`.
Number total(int end, std::size_t index) {
    return 1000 * static_cast<Number>(end) * (end - 1) / 2 + end * static_cast<Number>(index);
}

world::Options on_one_node(int ranks, const char* reduce_on) {
    world::Options options;
    options.machine = "h200";
    options.ranks = ranks;
    options.ranks_per_node = ranks;
    options.explain = false;
    options.mechanisms = "-node_segment";  // these go by messages
    // Under MPS nobody waits for time slices of the one GPU.
    options.change_machine = [](model::Machine& machine) { machine.gpu.turn = 0; };
    options.change_config = [reduce_on](config::Config& config) { config.reduce_on = reduce_on; };
    return options;
}

Bytes through_host(const device::fake::Counts& counts) {
    Bytes bytes = 0;
    for (const Operation each : {Operation::d2h, Operation::h2d, Operation::h2d_2d,
                                 Operation::pageable_d2h, Operation::pageable_h2d})
        bytes += counts.bytes[static_cast<int>(each)];
    return bytes;
}

// What a rank's device did in the last of `rounds` allreduces of `count` numbers.
struct Price {
    std::uint64_t reductions = 0;
    Bytes host_bytes = 0;
};

Task<Status> priced(Executor& executor, Rank& rank, std::size_t count, int rounds, Price* price) {
    Everybody everybody(rank);
    Array<Number> source(rank, Place::device, count), sink(rank, Place::device, count);
    for (std::size_t i = 0; i < count; ++i)
        source[i] = summand(rank.number, i);
    Status stored = co_await source.store(executor);
    GANTRY_CO_TRY(stored);
    for (int round = 0; round < rounds; ++round) {
        rank.device.reset_counts();
        Status met =
            co_await allreduce(executor, everybody.team(), source.buffer(), sink.buffer(), sum());
        GANTRY_CO_TRY(met);
    }
    *price = {rank.device.counts().reductions, through_host(rank.device.counts())};
    Status loaded = co_await sink.load(executor);
    GANTRY_CO_TRY(loaded);
    for (std::size_t i = 0; i < count; ++i)
        WORLD_CHECK(sink[i] == total(everybody.size(), i));
    co_return success();
}

std::vector<Price> prices(world::Options options, std::size_t count) {
    // The first rounds open the mappings of peers' memory.
    constexpr int kRounds = 12;
    std::vector<Price> all(static_cast<std::size_t>(options.ranks));
    world::World world(std::move(options));
    const world::Ending ending = world.run([&](Rank& rank) {
        return priced(rank.executor, rank, count, kRounds,
                      &all[static_cast<std::size_t>(rank.number)]);
    });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_TRUE(world.settle());
    return all;
}

constexpr std::size_t kLong = std::size_t{1} << 18, kShort = 100;

TEST(DeviceReduction, OfALongVectorSendsNothingThroughTheHost) {
    for (const int ranks : {2, 3, 4}) {
        for (const Price& price : prices(on_one_node(ranks, "auto"), kLong)) {
            EXPECT_EQ(price.host_bytes, 0u) << ranks << " ranks";
            // Each rank combines its share with those of the others, in pieces of 512 KiB.
            const Bytes share = kLong * sizeof(double) / static_cast<Bytes>(ranks);
            const Bytes pieces = (share + 512 * kKiB - 1) / (512 * kKiB);
            EXPECT_EQ(price.reductions, static_cast<Bytes>(ranks - 1) * pieces)
                << ranks << " ranks";
        }
    }
}

TEST(DeviceReduction, OfAShortVectorIsCheaperOnTheHost) {
    for (const Price& price : prices(on_one_node(2, "auto"), kShort)) {
        EXPECT_EQ(price.reductions, 0u);
        EXPECT_GT(price.host_bytes, 0u);
    }
}

TEST(DeviceReduction, HappensWhereTheUserSays) {
    for (const Price& price : prices(on_one_node(2, "gpu"), kShort))
        EXPECT_EQ(price.reductions, 1u);
    for (const Price& price : prices(on_one_node(2, "host"), kLong))
        EXPECT_EQ(price.reductions, 0u);
}

TEST(DeviceReduction, GoesThroughTheHostWithoutKernels) {
    world::Options options = on_one_node(3, "gpu");
    options.change_config = [](config::Config& config) {
        config.kernels = false;
        config.reduce_on = "gpu";
    };
    for (const Price& price : prices(std::move(options), kLong))
        EXPECT_EQ(price.reductions, 0u);
}

// --- every operation, in every mixture of places --------------------------------------------------

// A rank's place in mixture number `mixture`: a digit of it.
Place place_of(int rank, int mixture) {
    for (int i = 0; i < rank; ++i)
        mixture /= 3;
    return static_cast<Place>(mixture % 3);
}

Task<Status> all_operations(Executor& executor, Rank& rank, std::size_t count, int mixture) {
    Everybody everybody(rank);
    const int ranks = everybody.size(), me = rank.number;
    const auto size = static_cast<std::size_t>(ranks);
    // Also the two ends of one rank may differ.
    const Place from = place_of(me, mixture), to = place_of(me, mixture / 2);
    Array<Number> source(rank, from == Place::pinned ? Place::host : from, count * size),
        sink(rank, to == Place::pinned ? Place::host : to, count * size);
    for (std::size_t i = 0; i < count * size; ++i)
        source[i] = summand(me, i);
    Status status = co_await source.store(executor);
    GANTRY_CO_TRY(status);
    p2p::Buffer in = source.buffer(), out = sink.buffer();
    in.count = out.count = count;

    status = co_await allreduce(executor, everybody.team(), in, out, sum());
    GANTRY_CO_TRY(status);
    status = co_await sink.load(executor);
    GANTRY_CO_TRY(status);
    for (std::size_t i = 0; i < count; ++i)
        WORLD_CHECK(sink[i] == total(ranks, i));

    const int root = ranks - 1;
    status = co_await reduce(executor, everybody.team(), in, out, sum(), root);
    GANTRY_CO_TRY(status);
    status = co_await sink.load(executor);
    GANTRY_CO_TRY(status);
    for (std::size_t i = 0; i < count && me == root; ++i)
        WORLD_CHECK(sink[i] == total(ranks, i));

    for (const bool exclusive : {false, true}) {
        status = co_await scan(executor, everybody.team(), in, out, sum(), exclusive);
        GANTRY_CO_TRY(status);
        status = co_await sink.load(executor);
        GANTRY_CO_TRY(status);
        for (std::size_t i = 0; i < count && !(exclusive && me == 0); ++i)
            WORLD_CHECK(sink[i] == total(exclusive ? me : me + 1, i));
    }

    Blocks blocks;
    blocks.layout = &source.layout();
    for (int rank_of_block = 0; rank_of_block < ranks; ++rank_of_block) {
        blocks.counts.push_back(static_cast<std::int64_t>(count));
        blocks.displacements.push_back(static_cast<std::int64_t>(count) * rank_of_block);
    }
    in.count = count * size;
    status = co_await reduce_scatter(executor, everybody.team(), in, blocks, out, sum());
    GANTRY_CO_TRY(status);
    status = co_await sink.load(executor);
    GANTRY_CO_TRY(status);
    for (std::size_t i = 0; i < count; ++i)
        WORLD_CHECK(sink[i] == total(ranks, static_cast<std::size_t>(me) * count + i));

    // In place.
    in.count = count;
    status = co_await allreduce(executor, everybody.team(), in, in, sum());
    GANTRY_CO_TRY(status);
    status = co_await source.load(executor);
    GANTRY_CO_TRY(status);
    for (std::size_t i = 0; i < count; ++i)
        WORLD_CHECK(source[i] == total(ranks, i));
    co_return success();
}

TEST(DeviceReduction, IsRightInEveryMixtureOfMemory) {
    for (const int ranks : {2, 3, 5})
        for (const std::size_t count : {std::size_t{1}, std::size_t{50}, std::size_t{9001}})
            for (int mixture = 0; mixture < 27; mixture += 1 + static_cast<int>(count > 50) * 3) {
                world::Options options = on_one_node(ranks, mixture % 2 == 0 ? "gpu" : "auto");
                options.ranks_per_node = 1 + mixture % ranks;
                options.seed = static_cast<std::uint64_t>(mixture) + 1;
                options.jitter = 20 * kMicrosecond;
                options.network_order = transport::fake::Order::shuffled;
                world::World world(options);
                const world::Ending ending = world.run([&](Rank& rank) {
                    return all_operations(rank.executor, rank, count, mixture);
                });
                ASSERT_TRUE(ending.good()) << ranks << " ranks, " << count << " numbers, mixture "
                                           << mixture << ": " << ending;
                ASSERT_TRUE(world.settle()) << ranks << " ranks, mixture " << mixture;
            }
}

// --- failures -------------------------------------------------------------------------------------

Task<Status> meet(Executor& executor, Rank& rank, std::size_t count) {
    Everybody everybody(rank);
    Array<Number> source(rank, Place::device, count), sink(rank, Place::device, count);
    Status stored = co_await source.store(executor);
    GANTRY_CO_TRY(stored);
    if (rank.number == 1) rank.device.faults.fail_reduction = 1;
    Status met =
        co_await allreduce(executor, everybody.team(), source.buffer(), sink.buffer(), sum());
    if (rank.number == 1) WORLD_CHECK(!met.ok());
    co_return success();
}

TEST(DeviceReduction, ThatFailsOnOneRankEndsOnAll) {
    for (const int ranks : {2, 3, 4}) {
        world::World world(on_one_node(ranks, "gpu"));
        const world::Ending ending =
            world.run([&](Rank& rank) { return meet(rank.executor, rank, kShort); });
        ASSERT_TRUE(ending.good()) << ranks << " ranks: " << ending;
        ASSERT_TRUE(world.settle());
    }
}

}  // namespace
}  // namespace gantry::coll
