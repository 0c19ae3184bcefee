// SPDX-License-Identifier: BSD-3-Clause
//
// Device memory that was mapped by a peer, freed right behind its last message and allocated again.
#include "world/harness/programs.hpp"

namespace gantry::world {
namespace {

constexpr int kAllocations = 6, kUses = 4;

// Of each rank, by number.
struct Reused {
    int addresses[2] = {};  // allocations that lie where the one before them lay
};

Task<Status> fresh_allocation_each_time(Rank& rank, Reused& reused) {
    const std::byte* last = nullptr;
    for (int round = 0; round < kAllocations; ++round) {
        // A new allocation, likely at the address of the last one, whose mapping is still open: it
        // would bring old bytes.
        Bytebuffer buffer(rank, Place::device, kMiB);
        if (buffer.address() == last) ++reused.addresses[rank.number];
        last = buffer.address();
        for (int use = 0; use < kUses; ++use) {
            const auto key = static_cast<std::uint64_t>(kUses * round + use);
            if (rank.number == 0) {
                buffer.fill(key);
                Status sent = co_await send(rank, buffer.whole(), 1, 1);
                GANTRY_CO_TRY(sent);
                buffer.clear();  // nobody reads it any more
            } else {
                buffer.clear();
                Received received = co_await receive(rank, buffer.whole(), 0, 1);
                GANTRY_CO_TRY(received.status);
                WORLD_CHECK(buffer.holds(key, kMiB));
            }
        }
    }
    // By now the peer has heard of what was freed.
    Status slept = co_await rank.sleep(rank.executor, 30 * kMillisecond);
    GANTRY_CO_TRY(slept);
    Status met = co_await meet(rank, 7);
    co_return met;
}

// With and without what makes a message like the one before fast.
TEST(FreedMemory, SharedAndFreedAndAllocatedAgainBringsTheNewBytes) {
    for (const char* mechanisms : {"all", "none"}) {
        World world({.machine = "h200",
                     .ranks = 2,
                     .ranks_per_node = 2,
                     .seed = 1,
                     .mechanisms = mechanisms,
                     .change_config = [](config::Config& config) { config.ipc_threshold = 1; }});
        Reused reused;
        const Ending ending =
            world.run([&reused](Rank& rank) { return fresh_allocation_each_time(rank, reused); });
        ASSERT_TRUE(ending.good()) << ending;
        ASSERT_TRUE(world.settle());
        EXPECT_GT(reused.addresses[0], 0) << "no address was used again";
        // The receiver reads all but the first of each, which lies in slots.
        const device::fake::Counts& counts = world.rank(1).device.counts();
        EXPECT_EQ(world.rank(0).device.counts().opens, 0u);
        EXPECT_EQ(counts.opens, std::uint64_t{kAllocations}) << "each was mapped once";
        EXPECT_EQ(counts.closes, std::uint64_t{kAllocations}) << "and closed when it was freed";
        EXPECT_EQ(counts.copies[static_cast<int>(model::Operation::d2d)],
                  std::uint64_t{kAllocations * (kUses - 1)});
    }
}

}  // namespace
}  // namespace gantry::world
