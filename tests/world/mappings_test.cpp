// SPDX-License-Identifier: BSD-3-Clause
//
// Mappings of device memory as an investment: exact numbers of openings, on an H200.
#include "p2p/wire.hpp"
#include "world/harness/openings.hpp"
#include "world/harness/programs.hpp"

#include <memory>

namespace gantry::world {
namespace {

using device::IpcKind;

struct Stream {
    Bytes bytes = kMiB;
    int messages = 1;
    int buffers = 1;  // used in turn
    IpcKind kind = IpcKind::legacy;
    Place sink = Place::device;
    bool refuse_descriptor = false;
    bool refuse_export = false;
    bool anchored = false;       // as it is; else each opening is dear
    bool cold = false;           // slots have to be page-locked
    std::uint64_t pins = 0;      // by both ranks
    Nanoseconds took = 0;        // all messages
    Nanoseconds first = 0;       // the first one
    std::uint64_t openings = 0;  // of both ranks
    std::uint64_t anchors = 0;
    std::uint64_t descriptors = 0;
    std::uint64_t exports = 0;
    std::uint64_t whole_requests = 0;
    int opened_at = -1;             // the message that saw the first one
    std::uint64_t staged_last = 0;  // copies that the sender made for the last message
};

// Rank 0 on GPU 0 sends to rank 1 on GPU 1, one message at a time.
Task<Status> stream(Rank& rank, Stream& test) {
    std::vector<std::unique_ptr<Bytebuffer>> buffers;
    for (int i = 0; i < test.buffers; ++i)
        buffers.push_back(std::make_unique<Bytebuffer>(rank,
                                                       rank.number == 0 ? Place::device : test.sink,
                                                       test.bytes, rank.number, test.kind));
    rank.device.faults.refuse_descriptor = test.refuse_descriptor;
    rank.device.faults.refuse_ipc_export = test.refuse_export;
    const Nanoseconds begin = rank.processor.now();
    for (int message = 0; message < test.messages; ++message) {
        Bytebuffer& buffer = *buffers[static_cast<std::size_t>(message % test.buffers)];
        const auto key = static_cast<std::uint64_t>(message);
        if (rank.number == 0) {
            buffer.fill(key);
            const std::uint64_t before = rank.device.counts().all_copies();
            Status sent = co_await send(rank, buffer.whole(), 1, 0);
            GANTRY_CO_TRY(sent);
            test.staged_last = rank.device.counts().all_copies() - before;
        } else {
            buffer.clear();
            Received received = co_await receive(rank, buffer.whole(), 0, 0);
            GANTRY_CO_TRY(received.status);
            WORLD_CHECK(buffer.holds(key, test.bytes));
        }
        Status met = co_await meet(rank, 7);
        GANTRY_CO_TRY(met);
        if (message == 0) test.first = rank.processor.now() - begin;
        if (test.opened_at < 0 && rank.device.counts().opens > 0) test.opened_at = message;
    }
    test.took = rank.processor.now() - begin;
    co_return success();
}

void run(Stream& test, bool ipc = true) {
    World world({.machine = "h200",
                 .ranks_per_node = 2,
                 .seed = 7,
                 .mechanisms = test.anchored ? "all" : "all,-anchors",
                 .cold_slots = test.cold,
                 .change_machine =
                     [&test](model::Machine& machine) {
                         if (!test.anchored) dear_openings(machine);
                     },
                 .change_config = [ipc](config::Config& config) { config.ipc = ipc; }});
    const Ending ending = world.run([&test](Rank& rank) { return stream(rank, test); });
    EXPECT_TRUE(ending.good()) << ending;
    test.whole_requests = world.shared_memory().count(p2p::wire::kRts).messages;
    for (int rank = 0; rank < 2; ++rank) {
        test.openings += world.rank(rank).device.counts().opens;
        test.anchors += world.rank(rank).device.counts().anchors;
        test.pins += world.rank(rank).device.counts().pins;
        test.descriptors += world.rank(rank).device.counts().descriptors;
        test.exports += world.rank(rank).device.counts().exports;
    }
}

constexpr IpcKind kKinds[] = {IpcKind::legacy, IpcKind::vmm, IpcKind::pool};

TEST(RemoteMemory, TheFirstMessageOfABufferIsNotDearerThanStagingIt) {
    for (const IpcKind kind : kKinds)
        for (const Bytes bytes : {Bytes{8}, 64 * kKiB, kMiB, 4 * kMiB, 64 * kMiB}) {
            Stream test{.bytes = bytes, .kind = kind}, staged{.bytes = bytes, .kind = kind};
            run(test);
            run(staged, false);
            EXPECT_LE(test.first, staged.first * 13 / 10) << bytes;
            // The largest ones repay it themselves.
            EXPECT_EQ(test.openings, bytes == 64 * kMiB && kind == IpcKind::vmm ? 1u : 0u) << bytes;
        }
}

// A sender that remembers where staged messages ended must not keep what could be read in slots.
TEST(RemoteMemory, PageLockedMemoryIsReadIntoOnceTheSourceIsMappedWhateverWasStagedBefore) {
    for (const Bytes bytes : {64 * kKiB, 256 * kKiB, kMiB}) {
        Stream test{.bytes = bytes, .messages = 600, .sink = Place::pinned};
        run(test);
        EXPECT_EQ(test.openings, 1u) << bytes;
        EXPECT_LT(test.opened_at, 500) << bytes;
        EXPECT_EQ(test.staged_last, 0u) << bytes;
    }
}

TEST(RemoteMemory, AThousandFreshBuffersAreStaged) {
    for (const IpcKind kind : kKinds) {
        Stream test{.bytes = 64 * kKiB, .messages = 1000, .buffers = 1000, .kind = kind};
        Stream staged = test;
        run(test);
        run(staged, false);
        EXPECT_EQ(test.openings, 0u);
        EXPECT_EQ(test.descriptors, 0u);
        // What names virtual memory is there anyway.
        if (kind == IpcKind::legacy) {
            EXPECT_EQ(test.exports, 0u);
            // The others name an allocation and repeat the rest.
            EXPECT_LE(test.whole_requests, 3u);
        }
        EXPECT_LE(test.took, staged.took * 101 / 100);
    }
}

TEST(RemoteMemory, MemoryThatTheDriverDoesNotShareIsStagedAsIfNobodyHadAskedForIt) {
    for (const Place sink : {Place::device, Place::host, Place::pinned})
        for (const Bytes bytes : {64 * kKiB, kMiB}) {
            Stream test{.bytes = bytes, .messages = 120, .sink = sink, .refuse_export = true};
            Stream staged = test;
            run(test);
            run(staged, false);
            EXPECT_EQ(test.openings, 0u);
            EXPECT_LE(test.took, staged.took * 101 / 100) << bytes << " " << static_cast<int>(sink);
        }
}

TEST(RemoteMemory, AnOpeningComesOnceWhenItHasRepaidItself) {
    for (const IpcKind kind : kKinds) {
        Stream test{.bytes = 4 * kMiB, .messages = 120, .kind = kind};
        run(test);
        EXPECT_EQ(test.openings, 1u);
        EXPECT_EQ(test.descriptors, kind == IpcKind::legacy ? 0u : 1u);
        Stream staged{.bytes = 4 * kMiB, .messages = 120, .kind = kind};
        run(staged, false);
        // What was lost is at most what the opening cost once more.
        EXPECT_LT(test.took, staged.took + 10 * kMillisecond);
        // The price of opening over what a staged message costs more, 0.1 ms.
        const int expected = kind == IpcKind::legacy ? 20 : kind == IpcKind::vmm ? 4 : 95;
        EXPECT_NEAR(test.opened_at, expected, 2 + expected / 10);
    }
}

TEST(RemoteMemory, ABufferThatComesAgainIsOpenedAtOnceWhereAnAnchorIs) {
    for (const IpcKind kind : {IpcKind::legacy, IpcKind::vmm})
        for (const Bytes bytes : {Bytes{1024}, 64 * kKiB, kMiB}) {
            Stream test{.bytes = bytes, .messages = 20, .kind = kind, .anchored = true};
            run(test);
            EXPECT_EQ(test.openings, 1u) << bytes;
            EXPECT_EQ(test.anchors, 2u) << "each rank has one of the other's GPU";
            EXPECT_LE(test.opened_at, 3) << bytes;
        }
    // What is used once is staged as ever.
    Stream fresh{.bytes = 64 * kKiB, .messages = 200, .buffers = 200, .anchored = true};
    run(fresh);
    EXPECT_EQ(fresh.openings, 0u);
    EXPECT_EQ(fresh.anchors, 2u);
}

// Page-locking slots costs more than opening the memory, and the anchor is opened anyway.
TEST(RemoteMemory, TheFirstMessageOfAProcessIsDirectAndPageLocksNothing) {
    for (const Bytes bytes : {Bytes{8}, 64 * kKiB, kMiB, 16 * kMiB}) {
        Stream test{.bytes = bytes, .messages = 20, .anchored = true, .cold = true};
        run(test);
        EXPECT_EQ(test.openings, 1u) << bytes;
        EXPECT_EQ(test.opened_at, 0) << bytes;
        EXPECT_EQ(test.pins, 0u) << bytes;
    }
}

// A head by each rank for a small one, and all regions by both ranks where it goes on.
TEST(RemoteMemory, WhatCannotBeOpenedPageLocksAsItGoes) {
    const auto pins = [](Bytes bytes, int messages) {
        Stream test{.bytes = bytes, .messages = messages, .kind = IpcKind::none, .cold = true};
        run(test);
        EXPECT_EQ(test.openings, 0u);
        return test.pins;
    };
    EXPECT_LT(pins(4 * kKiB, 1), pins(4 * kKiB, 3));
    EXPECT_EQ(pins(4 * kKiB, 3), pins(4 * kKiB, 40));
    EXPECT_EQ(pins(4 * kMiB, 40), pins(4 * kKiB, 40));
}

TEST(RemoteMemory, WithoutItsDescriptorMemoryStaysStaged) {
    Stream test{.bytes = 4 * kMiB, .messages = 30, .kind = IpcKind::vmm, .refuse_descriptor = true};
    run(test);
    EXPECT_EQ(test.openings, 0u);
    EXPECT_GT(test.descriptors, 0u);
}

// --- fresh buffers on one side ------------------------------------------------------------------

// As MPI_Send and MPI_Recv: the receiver's buffer stays, and its sender maps it; the sender's is
// another one after some messages.
Task<Status> fresh_sources(Rank& rank, Bytes bytes) {
    Bytebuffer kept(rank, Place::device, bytes, rank.number);
    std::uint64_t key = 0;
    for (int buffers = 0; buffers < 6; ++buffers) {
        Bytebuffer fresh(rank, Place::device, bytes, rank.number);
        for (int message = 0; message < 40; ++message) {
            Received ended;
            if (rank.number == 0) {
                fresh.fill(++key);
                ended = co_await finish(rank.executor, rank,
                                        rank.messenger.send_to_wait(rank.all, fresh.whole(), 1, 0,
                                                                    p2p::SendMode::standard));
            } else {
                kept.clear();
                ended =
                    co_await finish(rank.executor, rank,
                                    rank.messenger.receive_to_wait(rank.all, kept.whole(), 0, 0));
                WORLD_CHECK(kept.holds(++key, bytes));
            }
            GANTRY_CO_TRY(ended.status);
        }
        Status met = co_await meet(rank, 7);
        GANTRY_CO_TRY(met);
    }
    co_return success();
}

TEST(RemoteMemory, WhatAFreshBufferHadCopiedAheadIsTakenFromSlotsWhereverOpeningsAreSettled) {
    for (const Bytes bytes : {Bytes{8}, 100 * kKiB, kMiB})
        for (const bool slow_gets : {false, true}) {
            Options options{.machine = "h200", .ranks_per_node = 2, .seed = 5};
            options.change_config = [](config::Config& config) { config.ipc_threshold = 1; };
            options.change_machine = [slow_gets](model::Machine& machine) {
                if (slow_gets) machine.gpu.peer_get.latency += 20 * kMicrosecond;
            };
            World world(options);
            const Ending ending =
                world.run([bytes](Rank& rank) { return fresh_sources(rank, bytes); });
            EXPECT_TRUE(ending.good()) << bytes << ": " << ending;
            EXPECT_TRUE(world.settle()) << "something was left over";
        }
}

}  // namespace
}  // namespace gantry::world
