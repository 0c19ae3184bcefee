// SPDX-License-Identifier: BSD-3-Clause
//
// Partitions over every transport of the world: ready in orders from a seed, some while the messages of others
// are under way, on networks that reorder and repeat; received as other partitions than they were sent.
#include "mpi/partitioned/receive.hpp"
#include "mpi/partitioned/send.hpp"
#include "sanitized.hpp"
#include "world/harness/programs.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>

namespace gantry::world {
namespace {

using mpi::HeldPartitions;
using mpi::PartitionedBuffer;
using mpi::PartitionedPlace;
using mpi::PartitionedReceive;
using mpi::PartitionedSend;

struct Shape {
    Bytes bytes;
    std::uint32_t sends, receives;
};
constexpr int kRounds = 3;

// What a communicator has.
struct Meeting {
    explicit Meeting(Rank& rank, Bytes message) : greetings(rank.all), partitions(rank.all) {
        greetings.context |= p2p::kPartitionedContext;
        partitions.context |= p2p::kPartitionedContext | p2p::kCollectiveContext;
        place.messenger = &rank.messenger;
        place.greetings = &greetings;
        place.partitions = &partitions;
        place.tags = &tags;
        place.held = &held;
        place.message_bytes = message;
    }
    p2p::Group greetings, partitions;
    std::uint32_t tags = 0;
    HeldPartitions held;
    PartitionedPlace place;
};

std::vector<std::uint32_t> order(std::uint32_t partitions, std::uint64_t seed) {
    std::vector<std::uint32_t> all(partitions);
    std::iota(all.begin(), all.end(), 0u);
    std::mt19937_64 random(seed);
    std::ranges::shuffle(all, random);
    return all;
}

Task<Status> finish_round(Executor& executor, Rank& rank, Meeting& meeting, p2p::Request* round) {
    while (!round->done) {
        meeting.held.send();
        co_await rank.turn();
    }
    Status status = round->status;
    rank.messenger.release(round);
    (void)executor;
    co_return status;
}

Task<Status> exchange_partitions(Rank& rank, Place where, Shape shape, Bytes message,
                                 std::uint64_t seed) {
    Meeting meeting(rank, message);
    Bytebuffer buffer(rank, where, shape.bytes, rank.number);
    const std::uint32_t mine = rank.number == 0 ? shape.sends : shape.receives;
    const PartitionedBuffer partitioned{buffer.address(), mine, shape.bytes / mine,
                                        buffer.whole().layout};
    if (rank.number == 0) {
        auto send = std::make_shared<PartitionedSend>(meeting.place, partitioned, 1, 5);
        Status opened = send->open(send);
        GANTRY_CO_TRY(opened);
        for (std::uint64_t round = 0; round < kRounds; ++round) {
            buffer.fill(round + 1);
            Result<p2p::Request*> started = send->start();
            GANTRY_CO_TRY(started.status());
            const std::vector<std::uint32_t> partitions = order(mine, seed + round);
            for (const std::uint32_t partition : partitions) {
                send->make_ready(partition);
                // Now and then others are sent meanwhile.
                if ((partition + seed) % 3 == 0) {
                    meeting.held.send();
                    co_await rank.turn();
                }
            }
            Status ended = co_await finish_round(rank.executor, rank, meeting, *started);
            GANTRY_CO_TRY(ended);
        }
        send->close();
    } else {
        auto receive = std::make_shared<PartitionedReceive>(meeting.place, partitioned, 0, 5);
        Status opened = receive->open(receive);
        GANTRY_CO_TRY(opened);
        for (std::uint64_t round = 0; round < kRounds; ++round) {
            buffer.clear();
            Result<p2p::Request*> started = receive->start();
            GANTRY_CO_TRY(started.status());
            Status ended = co_await finish_round(rank.executor, rank, meeting, *started);
            GANTRY_CO_TRY(ended);
            WORLD_CHECK(buffer.holds(round + 1, shape.bytes));
            for (std::uint32_t partition = 0; partition < mine; ++partition)
                WORLD_CHECK(receive->has_arrived(partition));
        }
        receive->close();
    }
    // The answer to the last of all has arrived before the buffers go.
    Status met = co_await meet(rank, 9);
    co_return met;
}

void expect_right(const Options& options, Place where, Shape shape, Bytes message) {
    World world(options);
    const Ending ending = world.run(
        [&](Rank& rank) { return exchange_partitions(rank, where, shape, message, options.seed); });
    EXPECT_TRUE(ending.good()) << ending << "\n"
                               << name(where) << ", " << shape.bytes << " bytes, " << shape.sends
                               << " -> " << shape.receives << ", messages of " << message;
    EXPECT_TRUE(world.settle()) << "something was left over";
}

constexpr Shape kShapes[] = {{960, 16, 10}, {4096, 1, 64}, {64 * 1024, 64, 16}, {1 << 20, 8, 32}};

TEST(Partitioned, ArriveWhateverTheOrderOverANetworkThatReordersAndRepeats) {
    for (std::uint64_t seed = 1; seed <= repetitions(8); ++seed)
        for (const Shape& shape : kShapes)
            for (const Bytes message : {Bytes{0}, Bytes{32 * kKiB}}) {
                Options options{.seed = seed, .jitter = 3 * kMicrosecond};
                options.network_order = transport::fake::Order::shuffled;
                options.duplicate_envelopes = true;
                expect_right(options, Place::host, shape, message);
            }
}

TEST(Partitioned, ArriveFromAndInDeviceMemory) {
    for (int ranks_per_node : {1, 2})
        for (std::uint64_t seed = 1; seed <= 4; ++seed)
            for (const Shape& shape : kShapes) {
                Options options{.machine = "h200", .ranks_per_node = ranks_per_node, .seed = seed};
                expect_right(options, Place::device, shape, 32 * kKiB);
            }
}

}  // namespace
}  // namespace gantry::world
