// SPDX-License-Identifier: BSD-3-Clause
//
// Pools that are too small for what is under way: messages wait, nobody waits for ever, and what a
// peer holds unreceived is bounded.
#include "sanitized.hpp"
#include "world/harness/programs.hpp"

#include <memory>
#include <vector>

namespace gantry::world {
namespace {

// Everybody sends to everybody, both ways at once, several messages each.
Task<Status> everybody_to_everybody(Rank& rank, Place place, Bytes bytes) {
    constexpr int kEach = 3;
    std::vector<std::unique_ptr<Bytebuffer>> in, out;
    std::vector<Result<p2p::Request*>> requests;
    for (int i = 0; i < kEach; ++i) {
        for (int other = 0; other < rank.all.size(); ++other) {
            if (other == rank.number) continue;
            in.push_back(std::make_unique<Bytebuffer>(rank, place, bytes));
            requests.push_back(rank.messenger.ireceive(rank.all, in.back()->whole(), other, i));
            out.push_back(std::make_unique<Bytebuffer>(rank, place, bytes));
            out.back()->fill(static_cast<std::uint64_t>(rank.number * 10 + i));
            requests.push_back(rank.messenger.isend(rank.all, out.back()->whole(), other, i,
                                                    p2p::SendMode::standard));
        }
    }
    for (Result<p2p::Request*>& request : requests) {
        Received ended = co_await finish(rank.executor, rank, std::move(request));
        GANTRY_CO_TRY(ended.status);
    }
    std::size_t at = 0;
    for (int i = 0; i < kEach; ++i)
        for (int other = 0; other < rank.all.size(); ++other)
            if (other != rank.number)
                WORLD_CHECK(in[at++]->holds(static_cast<std::uint64_t>(other * 10 + i), bytes));
    co_return success();
}

void expect_no_deadlock(Place place, int ranks, int ranks_per_node) {
    for (std::uint64_t seed = 1; seed <= repetitions(6); ++seed) {
        World world({.ranks = ranks,
                     .ranks_per_node = ranks_per_node,
                     .seed = seed,
                     .jitter = 10 * kMicrosecond,
                     .change_config = [](config::Config& config) {
                         config.device_pool =
                             512 * kKiB;  // eight units for a dozen messages of twice that
                         config.host_pool = 256 * kKiB;
                         config.eager_budget = 64 * kKiB;
                     }});
        const Ending ending = world.run(
            [place](Rank& rank) { return everybody_to_everybody(rank, place, kMiB + 77); });
        ASSERT_TRUE(ending.good()) << ending;
        ASSERT_TRUE(world.settle()) << "something was left over, seed " << seed;
    }
}

TEST(SmallPools, DeviceMessagesOfManyNodesWaitAndDoNotDeadlock) {
    expect_no_deadlock(Place::device, 4, 1);
}
TEST(SmallPools, DeviceMessagesOfOneNodeWaitAndDoNotDeadlock) {
    expect_no_deadlock(Place::device, 4, 4);
}
TEST(SmallPools, DeviceMessagesOfTwoNodesWaitAndDoNotDeadlock) {
    expect_no_deadlock(Place::device, 6, 3);
}
TEST(SmallPools, HostMessagesOfOneNodeWaitAndDoNotDeadlock) {
    expect_no_deadlock(Place::host, 4, 4);
}

// Slots that a peer puts into and slots of this rank's own messages come out of the same few: neither
// use may take the last slot of the other.
void expect_few_slots_to_do(int ranks_per_node, const char* mechanisms) {
    for (const Bytes pool : {128 * kKiB, 192 * kKiB, 256 * kKiB}) {
        for (std::uint64_t seed = 1; seed <= repetitions(4); ++seed) {
            World world({.ranks = 2,
                         .ranks_per_node = ranks_per_node,
                         .seed = seed,
                         .jitter = 10 * kMicrosecond,
                         .mechanisms = mechanisms,
                         .change_config = [pool](config::Config& config) {
                             config.ipc = false;
                             config.device_pool = pool;
                         }});
            const Ending ending = world.run([](Rank& rank) {
                return everybody_to_everybody(rank, Place::device, 300 * kKiB + 77);
            });
            ASSERT_TRUE(ending.good()) << ending << ", a pool of " << pool << " bytes";
            ASSERT_TRUE(world.settle()) << "something was left over, seed " << seed;
        }
    }
}

TEST(SmallPools, TwoToFourSlotsServeDeviceMessagesBothWaysBetweenNodes) {
    for (const char* mechanisms : {"all", "none"})
        expect_few_slots_to_do(1, mechanisms);
}
TEST(SmallPools, TwoToFourSlotsServeDeviceMessagesBothWaysInsideANode) {
    for (const char* mechanisms : {"all", "none"})
        expect_few_slots_to_do(2, mechanisms);
}

// The last message is received first: pieces of the others that were copied ahead must not hold the
// slots that it needs.
Task<Status> received_in_turned_order(Rank& rank, Place place) {
    constexpr Bytes kBytes = 300 * kKiB;
    constexpr int kMessages = 4;
    const int other = 1 - rank.number;
    std::vector<std::unique_ptr<Bytebuffer>> out;
    std::vector<Result<p2p::Request*>> sends;
    for (int tag = 0; tag < kMessages; ++tag) {
        out.push_back(std::make_unique<Bytebuffer>(rank, place, kBytes));
        out.back()->fill(static_cast<std::uint64_t>(10 * rank.number + tag));
        sends.push_back(rank.messenger.isend(rank.all, out.back()->whole(), other, tag,
                                             p2p::SendMode::standard));
    }
    for (int tag = kMessages - 1; tag >= 0; --tag) {
        Bytebuffer in(rank, place, kBytes);
        Received got = co_await receive(rank, in.whole(), other, tag);
        GANTRY_CO_TRY(got.status);
        WORLD_CHECK(in.holds(static_cast<std::uint64_t>(10 * other + tag), kBytes));
    }
    for (Result<p2p::Request*>& send : sends) {
        Received ended = co_await finish(rank.executor, rank, std::move(send));
        GANTRY_CO_TRY(ended.status);
    }
    co_return success();
}

TEST(SmallPools, ChunksAheadLeaveASlotToWhatIsReceivedFirst) {
    for (const Place place : {Place::device, Place::host})
        for (const int ranks_per_node : {1, 2}) {
            World world({.ranks = 2,
                         .ranks_per_node = ranks_per_node,
                         .seed = 1,
                         .change_config = [](config::Config& config) {
                             config.ipc = false;
                             config.device_pool = 128 * kKiB;
                             config.host_pool = config.host_cell = 64 * kKiB;
                         }});
            const Ending ending =
                world.run([place](Rank& rank) { return received_in_turned_order(rank, place); });
            EXPECT_TRUE(ending.good()) << ending;
            EXPECT_TRUE(world.settle()) << "something was left over";
        }
}

Task<Status> flood(Rank& rank) {
    constexpr int kMessages = 400;
    constexpr Bytes kBytes = 4000;
    if (rank.number == 1) {
        Status slept = co_await rank.sleep(rank.executor, 50 * kMillisecond);
        GANTRY_CO_TRY(slept);
    }
    std::vector<std::unique_ptr<Bytebuffer>> buffers;
    std::vector<Result<p2p::Request*>> requests;
    for (int i = 0; i < kMessages; ++i) {
        buffers.push_back(std::make_unique<Bytebuffer>(rank, Place::host, kBytes));
        if (rank.number == 0) {
            buffers.back()->fill(static_cast<std::uint64_t>(i));
            requests.push_back(rank.messenger.isend(rank.all, buffers.back()->whole(), 1, 1,
                                                    p2p::SendMode::standard));
        } else {
            requests.push_back(rank.messenger.ireceive(rank.all, buffers.back()->whole(), 0, 1));
        }
    }
    for (std::size_t i = 0; i < requests.size(); ++i) {
        Received ended = co_await finish(rank.executor, rank, std::move(requests[i]));
        GANTRY_CO_TRY(ended.status);
        WORLD_CHECK(rank.number == 0 || buffers[i]->holds(i, kBytes));
    }
    co_return success();
}

TEST(EagerBudget, BoundsWhatAPeerHoldsUnreceived) {
    World world({.ranks = 2, .seed = 1, .change_config = [](config::Config& config) {
                     config.eager_budget = 64 * kKiB;
                 }});
    const Ending ending = world.run(flood);
    ASSERT_TRUE(ending.good()) << ending;
    // By the time rank 1 began to receive, no more than the eager credit had come at once.
    Bytes before = 0;
    for (const transport::fake::TraceRow& row : world.network().trace())
        if (row.time < 50 * kMillisecond && row.to == 1) before += row.payload_bytes;
    EXPECT_LE(before, 64 * kKiB);
    EXPECT_GT(before, 32 * kKiB);
}

}  // namespace
}  // namespace gantry::world
