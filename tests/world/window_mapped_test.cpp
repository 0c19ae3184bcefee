// SPDX-License-Identifier: BSD-3-Clause
//
// Windows inside a node, through mappings: strided targets in device memory, and what is attached to a
// dynamic window.
#include "world/harness/window_parts.hpp"

#include <cstring>
#include <memory>
#include <vector>

namespace gantry::world {
namespace {

using rma::Verb;

// Whether the data bytes of both buffers are the same.
bool same(Rank& rank, std::byte* one, bool one_strided, std::byte* other, bool other_strided,
          Bytes bytes) {
    const auto stored = [&rank](std::byte* address, Bytes size) {
        std::byte* const behind = rank.device.behind(address, size);
        return behind != nullptr ? behind : address;
    };
    const std::byte* const first = stored(one, bytes);
    const std::byte* const second = stored(other, bytes);
    for (Bytes at = 0; at < bytes; ++at) {
        const Bytes row = at / 512 * 1024 + at % 512;  // bytes_layout
        if (first[one_strided ? row : at] != second[other_strided ? row : at]) return false;
    }
    return true;
}

struct Cost {
    Bytes copies = 0, launches = 0;
};

// Rank 0 works once at rank 1's device memory, which computes nothing meanwhile.
Task<Status> work_once(Rank& rank, Part part, Cost* cost) {
    const Bytes bytes = part.bytes;
    Bytebuffer memory(rank, Place::device, 2 * bytes, rank.number),
        origin(rank, Place::device, 2 * bytes, rank.number);
    (rank.number == 0 ? origin : memory).fill(static_cast<std::uint64_t>(3 + rank.number));
    std::unique_ptr<rma::Window> window;
    Status status = co_await open_window(rank, memory, &window);
    GANTRY_CO_TRY(status);
    status = co_await meet(rank, 1);
    GANTRY_CO_TRY(status);
    if (rank.number == 0) {
        rank.device.reset_counts();
        const Bytes messages = rank.world.shared_memory().count(rma::wire::kPut).messages +
                               rank.world.shared_memory().count(rma::wire::kGet).messages;
        WORLD_CHECK(messages == 0);
        status = co_await window->lock(rank.executor, 1, rma::Lock::exclusive);
        GANTRY_CO_TRY(status);
        GANTRY_CO_TRY(begin(rank, *window, origin, part));
        status = co_await window->unlock(rank.executor, 1);
        GANTRY_CO_TRY(status);
        const device::fake::Counts& counts = rank.device.counts();
        *cost = {counts.all_copies(), counts.row_launches};
        WORLD_CHECK(same(rank, origin.address(), part.strided_here, window->target(1).memory,
                         part.strided_there, bytes));
    }
    status = co_await meet(rank, 2);
    GANTRY_CO_TRY(status);
    if (rank.number == 1) {
        const device::fake::Counts& counts = rank.device.counts();
        WORLD_CHECK(counts.all_copies() == 0 && counts.row_launches == 0);
    }
    status = co_await window->close(rank.executor);
    co_return status;
}

TEST(WindowMapped, AStridedTargetIsOneKernelOfTheOrigin) {
    for (const Verb verb : {Verb::put, Verb::get})
        for (const bool here : {false, true})
            for (const bool there : {false, true}) {
                Cost cost;
                World world({.machine = "h200", .ranks_per_node = 2});
                const Ending ending = world.run([&](Rank& rank) {
                    return work_once(rank,
                                     {.verb = verb,
                                      .bytes = 256 * kKiB,
                                      .strided_here = here,
                                      .strided_there = there},
                                     &cost);
                });
                ASSERT_TRUE(ending.good()) << here << there << ": " << ending;
                EXPECT_TRUE(world.settle());
                // Where both ends are strided, by way of memory aside.
                EXPECT_EQ(cost.launches + cost.copies, here && there ? 2u : 1u) << here << there;
                if (here != there) {
                    EXPECT_EQ(cost.launches, 1u) << here << there;
                }
            }
}

// Puts of 128 KiB between two GPUs, all under way at once.
Task<Status> put_many(Rank& rank, int puts, device::fake::Counts* counts) {
    constexpr Bytes kEach = 128 * kKiB;
    Bytebuffer memory(rank, Place::device, kEach, rank.number),
        origin(rank, Place::device, kEach, rank.number);
    origin.fill(5);
    std::unique_ptr<rma::Window> window;
    Status status = co_await open_window(rank, memory, &window);
    GANTRY_CO_TRY(status);
    status = co_await meet(rank, 1);
    GANTRY_CO_TRY(status);
    if (rank.number == 0) {
        rank.device.reset_counts();
        status = co_await window->lock(rank.executor, 1, rma::Lock::shared);
        GANTRY_CO_TRY(status);
        for (int i = 0; i < puts; ++i)
            GANTRY_CO_TRY(begin(rank, *window, origin, {.bytes = kEach}));
        status = co_await window->unlock(rank.executor, 1);
        GANTRY_CO_TRY(status);
        *counts = rank.device.counts();
    }
    status = co_await window->close(rank.executor);
    GANTRY_CO_TRY(status);
    if (rank.number == 1) WORLD_CHECK(memory.holds(5, kEach));
    co_return success();
}

TEST(WindowMapped, LongerPutsBetweenGpusShareLaunches) {
    device::fake::Counts counts;
    World world({.machine = "h200", .ranks_per_node = 2});
    const Ending ending = world.run([&counts](Rank& rank) { return put_many(rank, 64, &counts); });
    ASSERT_TRUE(ending.good()) << ending;
    EXPECT_TRUE(world.settle());
    // The first goes alone; 2 MiB are worth a launch.
    EXPECT_LE(counts.launches + counts.all_copies(), 6u);
    EXPECT_GE(counts.launches, 1u);
}

// Each rank attaches two regions that touch, detaches one and attaches another, and says where they are.
struct Dynamic {
    Place place = Place::device;
    bool may_look = true;  // ranks may look into each other's memory
};

Task<Status> tell(Rank& rank, std::uint64_t* number, int tag) {
    static const layout::Layout one = layout::contiguous_layout(sizeof *number);
    const p2p::Buffer buffer{number, 1, &one};
    if (rank.number == 1) {
        Status sent = co_await send(rank, buffer, 0, tag);
        co_return sent;
    }
    Received got = co_await receive(rank, buffer, 1, tag);
    co_return got.status;
}

std::uint64_t messages_in_node(World& world) {
    std::uint64_t all = 0;
    for (int kind = rma::wire::kPut; kind <= rma::wire::kAnswerFollows; ++kind)
        all += world.shared_memory().count(static_cast<transport::MessageKind>(kind)).messages;
    return all;
}

Task<Status> work_at_attached(Rank& rank, Dynamic how) {
    constexpr Bytes kBytes = 64 * kKiB;
    Bytebuffer memory(rank, how.place, 2 * kBytes, rank.number),
        other(rank, how.place, kBytes, rank.number),
        origin(rank, how.place, 2 * kBytes, rank.number),
        again(rank, how.place, 2 * kBytes, rank.number);
    origin.fill(9);
    std::unique_ptr<rma::Window> window;
    Status status = co_await open_dynamic_window(rank, &window);
    GANTRY_CO_TRY(status);
    std::uint64_t base = 0, elsewhere = 0;
    if (rank.number == 1) {
        base = reinterpret_cast<std::uintptr_t>(memory.address());
        elsewhere = reinterpret_cast<std::uintptr_t>(other.address());
        GANTRY_CO_TRY(window->attach(memory.address(), kBytes));
        GANTRY_CO_TRY(window->attach(memory.address() + kBytes, kBytes));
    }
    status = co_await tell(rank, &base, 10);
    GANTRY_CO_TRY(status);
    status = co_await tell(rank, &elsewhere, 11);
    GANTRY_CO_TRY(status);
    if (rank.number == 0) {
        status = co_await window->lock(rank.executor, 1, rma::Lock::shared);
        GANTRY_CO_TRY(status);
        const std::uint64_t before = messages_in_node(rank.world);
        for (const Verb verb : {Verb::put, Verb::get, Verb::accumulate}) {
            Bytebuffer& buffer = verb == Verb::get ? again : origin;
            GANTRY_CO_TRY(
                begin(rank, *window, buffer, {.verb = verb, .bytes = 2 * kBytes, .base = base}));
            status = co_await window->flush(rank.executor, 1);
            GANTRY_CO_TRY(status);
        }
        WORLD_CHECK(again.holds(9, 2 * kBytes));
        // Nobody needed rank 1 for that.
        WORLD_CHECK(messages_in_node(rank.world) == before);
        // What is not attached yet is judged by its owner.
        Status begun = begin(rank, *window, origin, {.bytes = kBytes, .base = elsewhere});
        status = co_await window->flush(rank.executor, 1);
        WORLD_CHECK(!begun.ok() || status.error_class() == MPI_ERR_RMA_RANGE);
    }
    status = co_await meet(rank, 3);
    GANTRY_CO_TRY(status);
    if (rank.number == 1) {
        GANTRY_CO_TRY(window->detach(memory.address() + kBytes));
        GANTRY_CO_TRY(window->attach(other.address(), kBytes));
    }
    status = co_await meet(rank, 4);
    GANTRY_CO_TRY(status);
    if (rank.number == 0) {
        const std::uint64_t before = messages_in_node(rank.world);
        GANTRY_CO_TRY(begin(rank, *window, origin, {.bytes = kBytes, .base = elsewhere}));
        status = co_await window->flush(rank.executor, 1);
        GANTRY_CO_TRY(status);
        WORLD_CHECK(messages_in_node(rank.world) == before);
        Status begun = begin(rank, *window, origin, {.bytes = 2 * kBytes, .base = base});
        status = co_await window->flush(rank.executor, 1);
        WORLD_CHECK(!begun.ok() || status.error_class() == MPI_ERR_RMA_RANGE);
        status = co_await window->unlock(rank.executor, 1);
        GANTRY_CO_TRY(status);
    }
    status = co_await window->close(rank.executor);
    GANTRY_CO_TRY(status);
    if (rank.number == 1) WORLD_CHECK(other.holds(9, kBytes));
    co_return success();
}

TEST(WindowMapped, WhatIsAttachedIsReachedWithoutItsOwner) {
    for (const Place place : {Place::host, Place::device}) {
        World world({.machine = "h200", .ranks_per_node = 2});
        const Ending ending =
            world.run([place](Rank& rank) { return work_at_attached(rank, {place}); });
        ASSERT_TRUE(ending.good()) << name(place) << ": " << ending;
        EXPECT_TRUE(world.settle());
    }
}

// More than others can see at once goes by message.
constexpr Bytes kSeen = 30;
Task<Status> attach_many(Rank& rank) {
    constexpr Bytes kEach = 16;
    constexpr Bytes kMany = 40;
    Bytebuffer memory(rank, Place::host, 2 * kMany * kEach), origin(rank, Place::host, kEach);
    std::unique_ptr<rma::Window> window;
    Status status = co_await open_dynamic_window(rank, &window);
    GANTRY_CO_TRY(status);
    std::uint64_t base = reinterpret_cast<std::uintptr_t>(memory.address());
    if (rank.number == 1)
        for (Bytes i = 0; i < kMany; ++i)
            GANTRY_CO_TRY(window->attach(memory.address() + 2 * i * kEach, kEach));
    status = co_await tell(rank, &base, 10);
    GANTRY_CO_TRY(status);
    if (rank.number == 0) {
        status = co_await window->lock(rank.executor, 1, rma::Lock::shared);
        GANTRY_CO_TRY(status);
        origin.fill(4);
        for (const Bytes number : {Bytes{0}, kSeen - 1, kSeen, kMany - 1}) {
            const std::uint64_t before = messages_in_node(rank.world);
            GANTRY_CO_TRY(
                begin(rank, *window, origin, {.bytes = kEach, .base = base + 2 * number * kEach}));
            status = co_await window->flush(rank.executor, 1);
            GANTRY_CO_TRY(status);
            WORLD_CHECK((messages_in_node(rank.world) == before) == (number < kSeen));
        }
        status = co_await window->unlock(rank.executor, 1);
        GANTRY_CO_TRY(status);
    }
    status = co_await window->close(rank.executor);
    GANTRY_CO_TRY(status);
    if (rank.number == 1) {
        WORLD_CHECK(holds_pattern(memory.address(), 4, kEach));
        WORLD_CHECK(holds_pattern(memory.address() + 2 * (kMany - 1) * kEach, 4, kEach));
    }
    co_return success();
}

TEST(WindowMapped, MoreAttachmentsThanOthersCanSeeGoByMessage) {
    World world({.ranks_per_node = 2, .change_config = [](config::Config& config) {
                     config.window_attachments = kSeen;
                 }});
    const Ending ending = world.run([](Rank& rank) { return attach_many(rank); });
    ASSERT_TRUE(ending.good()) << ending;
    EXPECT_TRUE(world.settle());
}

}  // namespace
}  // namespace gantry::world
