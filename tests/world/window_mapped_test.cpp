// SPDX-License-Identifier: BSD-3-Clause
//
// Windows inside a node, through mappings: strided targets in device memory, and what is attached to a
// dynamic window.
#include "rma/windows.hpp"
#include "world/harness/programs.hpp"

#include <cstring>
#include <memory>
#include <vector>

namespace gantry::world {
namespace {

using rma::Verb;

constexpr Bytes kRow = 512, kPitch = 1024;

// 512 of each 1024 bytes.
const layout::Layout& rows() {
    static const layout::Block block[] = {{0, kRow}};
    static const layout::Layout made = layout::listed_layout(kPitch, block);
    return made;
}
const layout::Layout& run() {
    static const layout::Layout made = layout::contiguous_layout(1);
    return made;
}

struct Ends {
    bool strided_here = false, strided_there = false;
    Verb verb = Verb::put;
};

Task<Status> open(Executor& executor, Rank& rank, rma::Wanted wanted,
                  std::unique_ptr<rma::Window>* window) {
    p2p::Group group = rank.all;
    group.context = 77 | p2p::kCollectiveContext;
    Status made = co_await rank.windows.create(executor, group, wanted, window);
    co_return made;
}

Result<rma::Access> access_to(Rank& rank, Bytebuffer& origin, Bytes bytes, Ends ends,
                              std::uint64_t displacement) {
    rma::Access access;
    access.verb = ends.verb;
    access.target = 1;
    const layout::Layout& here = ends.strided_here ? rows() : run();
    access.layout = ends.strided_there ? &rows() : &run();
    access.origin.buffer = {origin.address(), bytes / here.size, &here};
    Result<device::Location> location = rank.transfer.locate(access.origin.buffer);
    GANTRY_TRY(location.status());
    access.origin.location = *location;
    access.displacement = static_cast<std::int64_t>(displacement);
    access.count = bytes / access.layout->size;
    access.bytes = bytes;
    access.items = rma::items_of(layout::Element::uint64);
    access.operation = layout::Operation::sum;
    return access;
}

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
        const Bytes row = at / kRow * kPitch + at % kRow;
        if (first[one_strided ? row : at] != second[other_strided ? row : at]) return false;
    }
    return true;
}

struct Cost {
    Bytes copies = 0, launches = 0;
};

// Rank 0 works once at rank 1's device memory, which computes nothing meanwhile.
Task<Status> work_once(Rank& rank, Ends ends, Cost* cost) {
    constexpr Bytes kBytes = 256 * kKiB;
    Bytebuffer memory(rank, Place::device, 2 * kBytes, rank.number),
        origin(rank, Place::device, 2 * kBytes, rank.number);
    (rank.number == 0 ? origin : memory).fill(static_cast<std::uint64_t>(3 + rank.number));
    rma::Wanted wanted;
    wanted.base = memory.address();
    wanted.bytes = memory.bytes();
    std::unique_ptr<rma::Window> window;
    Status status = co_await open(rank.executor, rank, wanted, &window);
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
        Result<rma::Access> access = access_to(rank, origin, kBytes, ends, 0);
        GANTRY_CO_TRY(access.status());
        GANTRY_CO_TRY(window->begin(*access, nullptr).status());
        status = co_await window->unlock(rank.executor, 1);
        GANTRY_CO_TRY(status);
        const device::fake::Counts& counts = rank.device.counts();
        *cost = {counts.all_copies(), counts.row_launches};
        WORLD_CHECK(same(rank, origin.address(), ends.strided_here, window->target(1).memory,
                         ends.strided_there, kBytes));
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
                    return work_once(rank, Ends{here, there, verb}, &cost);
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
    rma::Wanted wanted;
    wanted.flavor = rma::Flavor::dynamic;
    std::unique_ptr<rma::Window> window;
    Status status = co_await open(rank.executor, rank, wanted, &window);
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
            Result<rma::Access> access = access_to(rank, buffer, 2 * kBytes, {.verb = verb}, base);
            GANTRY_CO_TRY(access.status());
            GANTRY_CO_TRY(window->begin(*access, nullptr).status());
            status = co_await window->flush(rank.executor, 1);
            GANTRY_CO_TRY(status);
        }
        WORLD_CHECK(again.holds(9, 2 * kBytes));
        // Nobody needed rank 1 for that.
        WORLD_CHECK(messages_in_node(rank.world) == before);
        // What is not attached yet is judged by its owner.
        Result<rma::Access> access = access_to(rank, origin, kBytes, {}, elsewhere);
        GANTRY_CO_TRY(access.status());
        Status begun = window->begin(*access, nullptr).status();
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
        Result<rma::Access> access = access_to(rank, origin, kBytes, {}, elsewhere);
        GANTRY_CO_TRY(access.status());
        GANTRY_CO_TRY(window->begin(*access, nullptr).status());
        status = co_await window->flush(rank.executor, 1);
        GANTRY_CO_TRY(status);
        WORLD_CHECK(messages_in_node(rank.world) == before);
        access = access_to(rank, origin, 2 * kBytes, {}, base);
        GANTRY_CO_TRY(access.status());
        Status begun = window->begin(*access, nullptr).status();
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
Task<Status> attach_many(Rank& rank) {
    constexpr Bytes kEach = 16;
    constexpr Bytes kMany = rma::Attachments::kMost + 10;
    Bytebuffer memory(rank, Place::host, 2 * kMany * kEach), origin(rank, Place::host, kEach);
    rma::Wanted wanted;
    wanted.flavor = rma::Flavor::dynamic;
    std::unique_ptr<rma::Window> window;
    Status status = co_await open(rank.executor, rank, wanted, &window);
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
        for (const Bytes number : {Bytes{0}, kMany - 1}) {
            Result<rma::Access> access =
                access_to(rank, origin, kEach, {}, base + 2 * number * kEach);
            GANTRY_CO_TRY(access.status());
            GANTRY_CO_TRY(window->begin(*access, nullptr).status());
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
    World world({.ranks_per_node = 2});
    const Ending ending = world.run([](Rank& rank) { return attach_many(rank); });
    ASSERT_TRUE(ending.good()) << ending;
    EXPECT_TRUE(world.settle());
}

}  // namespace
}  // namespace gantry::world
