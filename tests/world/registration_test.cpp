// SPDX-License-Identifier: BSD-3-Clause
//
// Registrations with the network, counted over whole messages: once for a buffer that comes again,
// anew for an address that was freed, bounded, and nothing left.
#include "world/harness/programs.hpp"

#include <gtest/gtest.h>

namespace gantry::world {
namespace {

using transport::RegistrationCounts;

constexpr Bytes kLarge = 256 * kKiB;

const RegistrationCounts registrations(World& world, int rank) {
    return world.network().end(rank).stats().registrations;
}

// One message to rank 1 with the same buffers each time, or with buffers that are freed between.
enum class Buffers : std::uint8_t { repeated, freed };
Task<Status> repeat(Rank& rank, Buffers buffers, int messages) {
    Bytebuffer kept(rank, Place::host, kLarge);
    for (int i = 0; i < messages; ++i) {
        std::optional<Bytebuffer> fresh;
        if (buffers == Buffers::freed) fresh.emplace(rank, Place::host, kLarge);
        Bytebuffer& buffer = fresh ? *fresh : kept;
        if (rank.number == 0) {
            buffer.fill(static_cast<std::uint64_t>(i));
            Status sent = co_await send(rank, buffer.whole(), 1, 1);
            GANTRY_CO_TRY(sent);
        } else {
            Received received = co_await receive(rank, buffer.whole(), 0, 1);
            GANTRY_CO_TRY(received.status);
            WORLD_CHECK(buffer.holds(static_cast<std::uint64_t>(i), kLarge));
        }
    }
    co_return success();
}

TEST(Registrations, ARepeatedBufferRegistersOnceOnEachSide) {
    World world({.machine = "c2050-qdr"});
    const Ending ending = world.run([](Rank& rank) { return repeat(rank, Buffers::repeated, 10); });
    ASSERT_TRUE(ending.good()) << ending;
    for (int rank = 0; rank < 2; ++rank) {
        EXPECT_EQ(registrations(world, rank).registered, 1u) << "rank " << rank;
        EXPECT_EQ(registrations(world, rank).reused, 9u) << "rank " << rank;
    }
}

TEST(Registrations, AFreedAddressRegistersAnew) {
    World world({.machine = "c2050-qdr"});
    const Ending ending = world.run([](Rank& rank) { return repeat(rank, Buffers::freed, 10); });
    ASSERT_TRUE(ending.good()) << ending;
    EXPECT_EQ(registrations(world, 1).registered, 10u);
    EXPECT_EQ(registrations(world, 1).reused, 0u);
    EXPECT_LE(registrations(world, 1).live, 1u);
}

TEST(Registrations, UnnoticedMemoryIsRegisteredForEachMessageAndNeverKept) {
    World world({.machine = "c2050-qdr", .host_pages = transport::HostPages::unnoticed});
    const Ending ending = world.run([](Rank& rank) { return repeat(rank, Buffers::repeated, 10); });
    ASSERT_TRUE(ending.good()) << ending;
    for (int rank = 0; rank < 2; ++rank) {
        EXPECT_EQ(registrations(world, rank).registered, 10u);
        EXPECT_EQ(registrations(world, rank).live, 0u);
    }
}

// Eight buffers in turn through a cache of `entries`.
Task<Status> take_turns(Rank& rank) {
    std::vector<std::unique_ptr<Bytebuffer>> buffers;
    for (int i = 0; i < 8; ++i)
        buffers.push_back(std::make_unique<Bytebuffer>(rank, Place::host, kLarge));
    for (std::size_t i = 0; i < 24; ++i) {
        Bytebuffer& buffer = *buffers[i % buffers.size()];
        if (rank.number == 0) {
            buffer.fill(i);
            Status sent = co_await send(rank, buffer.whole(), 1, 1);
            GANTRY_CO_TRY(sent);
        } else {
            Received received = co_await receive(rank, buffer.whole(), 0, 1);
            GANTRY_CO_TRY(received.status);
            WORLD_CHECK(buffer.holds(i, kLarge));
        }
    }
    co_return success();
}

TEST(Registrations, AFullCacheEvictsAndStillDeliversAll) {
    for (const int entries : {0, 1, 4, 8}) {
        World world({.machine = "c2050-qdr", .change_config = [entries](config::Config& config) {
                         config.registration_entries = entries;
                     }});
        const Ending ending = world.run(take_turns);
        ASSERT_TRUE(ending.good()) << ending;
        for (int rank = 0; rank < 2; ++rank) {
            const RegistrationCounts counts = registrations(world, rank);
            EXPECT_EQ(counts.registered, entries == 8 ? 8u : 24u) << entries << " entries";
            EXPECT_EQ(counts.live, static_cast<std::uint64_t>(entries));
        }
    }
}

TEST(Registrations, CostTheProcessorThatRegisters) {
    Nanoseconds times[2];
    for (const int costly : {0, 1}) {
        World world({.machine = "c2050-qdr", .change_machine = [costly](model::Machine& machine) {
                         machine.network.register_cost = costly * kMillisecond;
                     }});
        const Ending ending =
            world.run([](Rank& rank) { return repeat(rank, Buffers::repeated, 10); });
        ASSERT_TRUE(ending.good()) << ending;
        times[costly] = ending.time;
    }
    EXPECT_GE(times[1] - times[0], kMillisecond / 2) << "beside other waiting";
    EXPECT_LE(times[1] - times[0], 3 * kMillisecond) << "once, not ten times";
}

}  // namespace
}  // namespace gantry::world
