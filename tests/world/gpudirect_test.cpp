// SPDX-License-Identifier: BSD-3-Clause
//
// GPUDirect: rails that read and write device memory themselves, on both sides, on one of them, or
// only where it is faster; and a registration that is refused in the middle of it. Both ranks send
// and receive at once, receives are posted before or after the message comes, all bytes are checked
// (what a card wrote shows only after the receiver settled it), and what went through slots is
// counted exactly.
#include "world/harness/programs.hpp"

#include <gtest/gtest.h>

namespace gantry::world {
namespace {

using model::Operation;

enum class Posted : std::uint8_t { before, after };

Task<Status> swap(Rank& rank, Place place, Bytes bytes, Posted posted, int rounds) {
    const int peer = 1 - rank.number;
    Bytebuffer out(rank, place, bytes), in(rank, place, bytes + 8);
    for (int round = 0; round < rounds; ++round) {
        const auto key = static_cast<std::uint64_t>(10 * round + rank.number);
        out.fill(key);
        in.clear();
        Result<p2p::Request*> receiving(nullptr);
        if (posted == Posted::before)
            receiving = rank.messenger.ireceive(rank.all, in.whole(), peer, 1);
        Status met = co_await meet(rank, 100);
        GANTRY_CO_TRY(met);
        Result<p2p::Request*> sending =
            rank.messenger.isend(rank.all, out.whole(), peer, 1, p2p::SendMode::standard);
        if (posted == Posted::after) {
            Status slept = co_await rank.sleep(rank.executor, 5 * kMillisecond);
            GANTRY_CO_TRY(slept);
            receiving = rank.messenger.ireceive(rank.all, in.whole(), peer, 1);
        }
        Received sent = co_await finish(rank.executor, rank, std::move(sending));
        GANTRY_CO_TRY(sent.status);
        out.fill(~key);
        Received received = co_await finish(rank.executor, rank, std::move(receiving));
        GANTRY_CO_TRY(received.status);
        WORLD_CHECK(received.outcome.bytes == bytes);
        WORLD_CHECK(in.holds(static_cast<std::uint64_t>(10 * round + peer), bytes));
    }
    co_return success();
}

void with_gpudirect(model::Machine& machine) {
    machine.network.device_memory = true;
}
void with_slow_reads(model::Machine& machine) {
    with_gpudirect(machine);
    machine.network.device_read = 1e9;
    machine.network.device_write = 5e9;
}

// Bytes that a rank copied between its device and slots or pageable memory.
Bytes staged(World& world, int rank) {
    const device::fake::Counts& counts = world.rank(rank).device.counts();
    Bytes all = 0;
    for (const Operation operation : {Operation::d2h, Operation::h2d, Operation::h2d_2d,
                                      Operation::pageable_d2h, Operation::pageable_h2d})
        all += counts.bytes[static_cast<int>(operation)];
    return all;
}

constexpr int kRounds = 3;
constexpr Bytes kSizes[] = {64 * kKiB + 1, kMiB + 5, 5 * kMiB};

class GpuDirect : public ::testing::TestWithParam<Posted> {
  protected:
    // Runs the swap for a size and returns the world to be asked.
    std::unique_ptr<World> run(Options options, Bytes bytes, Place place = Place::device) {
        auto world = std::make_unique<World>(std::move(options));
        const Posted posted = GetParam();
        const Ending ending = world->run([place, bytes, posted](Rank& rank) {
            return swap(rank, place, bytes, posted, kRounds);
        });
        EXPECT_TRUE(ending.good()) << bytes << " bytes: " << ending;
        EXPECT_TRUE(world->settle()) << bytes << " bytes";
        return world;
    }
};

TEST_P(GpuDirect, OnBothSidesStagesNothingAndRegistersOnce) {
    for (const char* machine : {"h200", "c2050-qdr"}) {
        for (const Bytes bytes : {Bytes{8}, Bytes{3000}, kSizes[0], kSizes[1], kSizes[2]}) {
            const auto world = run({.machine = machine, .change_machine = &with_gpudirect}, bytes);
            for (int rank = 0; rank < 2; ++rank) {
                EXPECT_EQ(staged(*world, rank), 0u) << machine << ", " << bytes << " bytes";
                EXPECT_EQ(world->rank(rank).device.counts().flushes, std::uint64_t{kRounds});
                const auto counts = world->network().end(rank).stats().registrations;
                EXPECT_EQ(counts.registered, 2u) << "what is sent and where it comes to";
                EXPECT_EQ(counts.reused, 2u * (kRounds - 1));
            }
            EXPECT_EQ(world->network().puts().messages, 2u * kRounds);
        }
    }
}

TEST_P(GpuDirect, OnOneSideStagesTheOtherOnly) {
    for (const Bytes bytes : kSizes) {
        const auto world = run({.machine = "h200",
                                .gpudirect = [](int rank) { return rank == 0; },
                                .change_machine = &with_gpudirect},
                               bytes);
        EXPECT_EQ(staged(*world, 0), 0u) << bytes << " bytes";
        EXPECT_EQ(world->rank(0).device.counts().flushes, std::uint64_t{kRounds});
        EXPECT_EQ(staged(*world, 1), 2 * kRounds * bytes) << "out and in";
        EXPECT_EQ(world->rank(1).device.counts().flushes, 0u);
        EXPECT_EQ(world->network().puts().payload_bytes, 2 * kRounds * bytes);
    }
}

TEST_P(GpuDirect, ThatReadsSlowlyStagesLargeSourcesOnly) {
    const auto small =
        run({.machine = "c2050-qdr", .change_machine = &with_slow_reads}, Bytes{1000});
    const auto large = run({.machine = "c2050-qdr", .change_machine = &with_slow_reads}, 4 * kMiB);
    for (int rank = 0; rank < 2; ++rank) {
        EXPECT_EQ(staged(*small, rank), 0u);
        EXPECT_EQ(staged(*large, rank), kRounds * 4 * kMiB) << "its own messages, not the other's";
        EXPECT_EQ(large->rank(rank).device.counts().flushes, std::uint64_t{kRounds});
    }
}

TEST_P(GpuDirect, RefusedAtOneSideIsStagedThereWithoutLoss) {
    for (const Bytes bytes : kSizes) {
        const auto world =
            run({.machine = "h200",
                 .refuse_registration =
                     [](int rank, const transport::Extent& extent) {
                         return rank == 1 && extent.place == transport::MemoryPlace::device;
                     },
                 .change_machine = &with_gpudirect},
                bytes);
        EXPECT_EQ(staged(*world, 0), 0u);
        EXPECT_EQ(staged(*world, 1), 2 * kRounds * bytes);
        const auto counts = world->network().end(1).stats().registrations;
        EXPECT_EQ(counts.refused, 2u) << "each allocation once, not each message";
    }
}

TEST_P(GpuDirect, RefusedHostMemoryIsStagedWithoutLoss) {
    for (const Bytes bytes : kSizes) {
        for (const int who : {0, 1, 2}) {  // 2: both
            const auto world =
                run({.machine = "c2050-qdr",
                     .refuse_registration =
                         [who, bytes](int rank, const transport::Extent& extent) {
                             return (who == 2 || rank == who) && extent.bytes <= bytes + 8;
                         }},
                    bytes, Place::host);
            EXPECT_EQ(world->network().puts().payload_bytes, 2 * kRounds * bytes);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Receives, GpuDirect, ::testing::Values(Posted::before, Posted::after),
                         [](const auto& test) {
                             return test.param == Posted::before ? "Posted" : "Unexpected";
                         });

// A sender that loses its registration after its offer (or whose verdict is another than the offer)
// says nothing to anybody: it fills slots of its own.
TEST(GpuDirectRefusal, AfterTheOfferIsTheSendersOwnBusiness) {
    int asked = 0;
    World world({.machine = "h200",
                 .refuse_registration =
                     [&asked](int rank, const transport::Extent& extent) {
                         return rank == 0 && extent.place == transport::MemoryPlace::host &&
                                extent.bytes == kMiB && ++asked > 0;
                     },
                 .change_machine = &with_gpudirect});
    const Ending ending = world.run([](Rank& rank) {
        return [](Rank& self) -> Task<Status> {
            Bytebuffer buffer(self, Place::host, kMiB);
            if (self.number == 0) {
                buffer.fill(7);
                Status sent = co_await send(self, buffer.whole(), 1, 1);
                co_return sent;
            }
            Received received = co_await receive(self, buffer.whole(), 0, 1);
            GANTRY_CO_TRY(received.status);
            WORLD_CHECK(buffer.holds(7, kMiB));
            co_return success();
        }(rank);
    });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_EQ(asked, 1);
    EXPECT_EQ(world.network().puts().messages, 4u) << "pieces of 256 KiB out of slots";
    EXPECT_TRUE(world.settle());
}

TEST(GpuDirectFlush, WithoutItTheBytesWouldNotBeThere) {
    World world({.machine = "h200", .change_machine = &with_gpudirect});
    for (int rank = 0; rank < 2; ++rank)
        world.rank(rank).device.on_flush = nullptr;
    const Ending ending =
        world.run([](Rank& rank) { return swap(rank, Place::device, kMiB, Posted::before, 1); });
    EXPECT_FALSE(ending.good()) << "the world must catch a receiver that does not settle";
}

}  // namespace
}  // namespace gantry::world
