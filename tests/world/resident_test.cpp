// SPDX-License-Identifier: BSD-3-Clause
//
// Persistent kernels on a GPU: who gets one, what a message costs then, and who gets none.
#include "sanitized.hpp"
#include "world/harness/programs.hpp"

#include <deque>
#include <vector>

namespace gantry::world {
namespace {

struct Traffic {
    Bytes bytes = 8;
    int window = 1;                                   // messages of a round, each way
    int rounds = 400;                                 // the first ones are staged
    int measured = 10;                                // of them, at the end
    Nanoseconds pause = 0;                            // before each round
    int gpu[2] = {0, 1};                              // of each rank
    Place place[2] = {Place::device, Place::device};  // likewise
    Nanoseconds latency = 0;                          // result: of a message of the measured rounds
};

Task<Status> one_way(Rank& rank, Traffic& test, Bytebuffer& buffer, int from, int round) {
    std::deque<Result<p2p::Request*>> requests;
    for (int i = 0; i < test.window; ++i) {
        const p2p::Buffer part = buffer.part(static_cast<Bytes>(i) * test.bytes, test.bytes);
        requests.push_back(
            rank.number == from
                ? rank.messenger.isend(rank.all, part, 1 - from, round, p2p::SendMode::standard)
                : rank.messenger.ireceive(rank.all, part, from, round));
    }
    for (Result<p2p::Request*>& request : requests) {
        Received ended = co_await finish(rank.executor, rank, std::move(request));
        GANTRY_CO_TRY(ended.status);
    }
    co_return success();
}

Task<Status> exchange(Rank& rank, Traffic& test) {
    const Bytes all = test.bytes * static_cast<Bytes>(test.window);
    Bytebuffer buffer(rank, rank.number < 2 ? test.place[rank.number] : Place::device, all,
                      rank.number < 2 ? test.gpu[rank.number] : test.gpu[0]);
    if (rank.number >= 2) {
        // Uses the GPU for something of its own.
        Result<p2p::Request*> posted =
            rank.messenger.ireceive(rank.all, buffer.whole(), MPI_ANY_SOURCE, 0);
        GANTRY_CO_TRY(posted.status());
        WORLD_CHECK(rank.messenger.cancel(**posted));
        rank.messenger.release(*posted);
        co_return success();
    }
    Nanoseconds begin = 0;
    for (int round = 0; round < test.rounds; ++round) {
        if (round == test.rounds - test.measured) {
            begin = rank.processor.now();
            rank.device.reset_counts();
        }
        if (test.pause > 0) {
            Status slept = co_await rank.sleep(rank.executor, test.pause);
            GANTRY_CO_TRY(slept);
        }
        for (const int from : {0, 1}) {
            if (rank.number == from) buffer.fill(static_cast<std::uint64_t>(2 * round + from));
            Status sent = co_await one_way(rank, test, buffer, from, round);
            GANTRY_CO_TRY(sent);
            WORLD_CHECK(buffer.holds(static_cast<std::uint64_t>(2 * round + from), all));
        }
    }
    if (rank.number == 0)
        test.latency = (rank.processor.now() - begin) / (2 * test.measured * test.window);
    co_return success();
}

struct Counts {
    std::uint64_t resident = 0, launches = 0, others = 0;
};

Options two_ranks(Nanoseconds idle_timeout) {
    Options options{.machine = "h200", .ranks_per_node = 2, .seed = 11, .mechanisms = "all"};
    options.change_config = [idle_timeout](config::Config& config) {
        config.idle_timeout = idle_timeout;
    };
    return options;
}

Counts run(Traffic& test, Options options) {
    World world(std::move(options));
    const Ending ending = world.run([&test](Rank& rank) { return exchange(rank, test); });
    EXPECT_TRUE(ending.good()) << ending;
    Counts counts;
    for (int rank = 0; rank < 2; ++rank) {
        const device::fake::Counts& each = world.rank(rank).device.counts();
        counts.resident += each.resident_copies;
        counts.launches += each.resident_launches;
        counts.others += each.all_copies() + each.launches;
    }
    return counts;
}

constexpr Nanoseconds kIdleTimeout = 50 * kMicrosecond;

TEST(Resident, APingPongNeedsNoCallOfTheDriver) {
    for (const Bytes bytes : {Bytes{8}, 16 * kKiB}) {
        Traffic with{.bytes = bytes}, without{.bytes = bytes};
        const Counts counts = run(with, two_ranks(kIdleTimeout));
        // A kernel that has lived long enough misses one.
        EXPECT_GE(counts.resident, 19u) << bytes;
        EXPECT_EQ(counts.resident + counts.others, 20u) << bytes;
        EXPECT_EQ(run(without, two_ranks(0)).resident, 0u);
        EXPECT_LE(static_cast<double>(with.latency), 0.8 * static_cast<double>(without.latency))
            << bytes;
    }
}

TEST(Resident, TakesLargerMessagesBetweenTwoGpusThatComeAlone) {
    Traffic with{.bytes = 256 * kKiB}, without{.bytes = 256 * kKiB};
    // Each of the two kernels may miss one.
    EXPECT_GE(run(with, two_ranks(kIdleTimeout)).resident, 18u);
    EXPECT_EQ(run(without, two_ranks(0)).resident, 0u);
    EXPECT_LT(with.latency, without.latency);
    // In a row they are the copy engines', but for the first ones (no receive is posted for them yet).
    Traffic window{.bytes = 256 * kKiB, .window = 4};
    const Counts counts = run(window, two_ranks(kIdleTimeout));
    EXPECT_GE(counts.others, 3u * 20);
    EXPECT_EQ(counts.resident + counts.others, 4u * 20);
    Traffic too_large{.bytes = 256 * kKiB + 16}, inside_one{.bytes = 256 * kKiB, .gpu = {0, 0}};
    EXPECT_EQ(run(too_large, two_ranks(kIdleTimeout)).resident, 0u);
    Options under_mps = two_ranks(kIdleTimeout);
    under_mps.change_machine = [](model::Machine& machine) { machine.gpu.turn = 0; };
    EXPECT_EQ(run(inside_one, std::move(under_mps)).resident, 0u);
}

TEST(Resident, TakesWindowsWithoutALaunchForEach) {
    Traffic with{.window = 64}, without{.window = 64};
    const Counts counts = run(with, two_ranks(kIdleTimeout));
    // 20 windows: the kernels that end meanwhile, by their age, miss a window each.
    EXPECT_LE(counts.launches, 2u);
    EXPECT_LE(counts.others, 4u);
    EXPECT_GE(counts.resident, 18u * 64);
    run(without, two_ranks(0));
    EXPECT_LT(with.latency, without.latency);
}

TEST(Resident, ServesTwoRanksOfAGpuUnderMps) {
    Traffic test{.gpu = {0, 0}};
    Options options = two_ranks(kIdleTimeout);
    options.change_machine = [](model::Machine& machine) { machine.gpu.turn = 0; };
    EXPECT_EQ(run(test, std::move(options)).others, 0u);
}

// Between a device and a host of one node each message is one copy; over a network each end of a
// message between devices is one.
TEST(Resident, CopiesToAndFromHostMemoryNeedNoCallOfTheDriver) {
    for (const int device : {0, 1}) {
        Traffic with{.bytes = 1024}, without{.bytes = 1024};
        with.place[1 - device] = without.place[1 - device] = Place::host;
        const Counts counts = run(with, two_ranks(kIdleTimeout));
        EXPECT_GE(counts.resident, 19u) << device;
        EXPECT_LE(counts.others, 1u) << device;
        EXPECT_EQ(run(without, two_ranks(0)).resident, 0u);
        EXPECT_LT(with.latency, without.latency - 1000) << device;
    }
}

TEST(Resident, OverANetworkItCopiesAtBothEnds) {
    Traffic with{.bytes = 1024}, without{.bytes = 1024};
    const auto apart = [](Nanoseconds idle_timeout) {
        Options options = two_ranks(idle_timeout);
        options.ranks_per_node = 1;
        options.change_config = [idle_timeout](config::Config& config) {
            config.idle_timeout = idle_timeout;
            config.gpudirect = "off";
        };
        return options;
    };
    const Counts counts = run(with, apart(kIdleTimeout));
    EXPECT_GE(counts.resident, 36u);
    EXPECT_LE(counts.others, 4u);
    run(without, apart(0));
    EXPECT_LT(with.latency, without.latency - 2500);
}

Options staged(Nanoseconds idle_timeout, int ranks = 2) {
    Options options = two_ranks(idle_timeout);
    options.ranks = options.ranks_per_node = ranks;
    options.change_config = [idle_timeout](config::Config& config) {
        config.idle_timeout = idle_timeout;
        config.ipc = false;
    };
    return options;
}

// By copy engines the second copy begins when the first is done, or a half of it.
TEST(Resident, AStagedMessageFlowsThroughItsSlots) {
    std::vector<Bytes> sizes = {48 * kKiB, kMiB + 7};
    if (!kSanitized) sizes.insert(sizes.end(), {Bytes{100'001}, 256 * kKiB, kMiB, 2 * kMiB});
    for (const Bytes bytes : sizes) {
        Traffic with{.bytes = bytes}, without{.bytes = bytes};
        EXPECT_GT(run(with, staged(kIdleTimeout)).resident, 30u) << bytes;
        EXPECT_EQ(run(without, staged(0)).resident, 0u);
        EXPECT_LT(static_cast<double>(with.latency), 0.87 * static_cast<double>(without.latency))
            << bytes;
    }
    // The largest that does: copy engines overlap its pieces, too.
    Traffic with{.bytes = 4 * kMiB}, without{.bytes = 4 * kMiB};
    run(with, staged(kIdleTimeout));
    run(without, staged(0));
    EXPECT_LT(static_cast<double>(with.latency), 0.97 * static_cast<double>(without.latency));
}

struct Ring {
    Bytes bytes = 0;
    int window = 1;
};

// Each sends to its right and receives from its left, all at once; with two ranks that is both ways.
Task<Status> around(Rank& rank, const Ring& ring) {
    const Bytes all = ring.bytes * static_cast<Bytes>(ring.window);
    Bytebuffer out(rank, Place::device, all, rank.number),
        in(rank, Place::device, all, rank.number);
    const int ranks = rank.world.options().ranks;
    const int right = (rank.number + 1) % ranks, left = (rank.number + ranks - 1) % ranks;
    for (int round = 0; round < 60; ++round) {
        const auto seed = [&](int from) { return static_cast<std::uint64_t>(100 * round + from); };
        out.fill(seed(rank.number));
        std::deque<Result<p2p::Request*>> requests;
        for (int i = 0; i < ring.window; ++i) {
            const Bytes at = static_cast<Bytes>(i) * ring.bytes;
            requests.push_back(
                rank.messenger.ireceive(rank.all, in.part(at, ring.bytes), left, round));
            requests.push_back(rank.messenger.isend(rank.all, out.part(at, ring.bytes), right,
                                                    round, p2p::SendMode::standard));
        }
        for (Result<p2p::Request*>& request : requests) {
            Received ended = co_await finish(rank.executor, rank, std::move(request));
            GANTRY_CO_TRY(ended.status);
        }
        WORLD_CHECK(in.holds(seed(left), all));
    }
    co_return success();
}

TEST(Resident, MessagesFlowBothWaysAndAroundARing) {
    for (const int ranks : {2, 3})
        for (const Bytes bytes : {64 * kKiB, Bytes{300'007}, kMiB})
            for (const int window : {1, 4}) {
                SCOPED_TRACE(testing::Message()
                             << ranks << " ranks, " << window << " of " << bytes);
                const Ring ring{bytes, window};
                World world(staged(kIdleTimeout, ranks));
                const Ending ending = world.run([&ring](Rank& rank) { return around(rank, ring); });
                ASSERT_TRUE(ending.good()) << ending;
                ASSERT_TRUE(world.settle());
                std::uint64_t by_kernels = 0;
                for (int rank = 0; rank < ranks; ++rank)
                    by_kernels += world.rank(rank).device.counts().resident_copies;
                EXPECT_GT(by_kernels, 60u);
            }
}

// Its kernels would hold up the neighbour's for as long as they stay.
TEST(Resident, NoneStaysOnAGpuThatAnotherRankUses) {
    Traffic test;
    Options options = two_ranks(kIdleTimeout);
    options.ranks = options.ranks_per_node = 3;  // the third one on rank 0's GPU
    World world(std::move(options));
    const Ending ending = world.run([&test](Rank& rank) { return exchange(rank, test); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_EQ(world.rank(0).device.counts().resident_copies, 0u);
    EXPECT_GT(world.rank(1).device.counts().resident_copies, 0u);
}

TEST(Resident, MessagesFarApartGetNone) {
    Traffic test{.pause = 200 * kMicrosecond};
    const Counts counts = run(test, two_ranks(kIdleTimeout));
    EXPECT_EQ(counts.resident + counts.launches, 0u);
}

}  // namespace
}  // namespace gantry::world
