// SPDX-License-Identifier: BSD-3-Clause
//
// A backend on a ring (io/ring_backend.hpp): what ends in any order, short, interrupted or with an error
// ends as it does by threads, never more is under way than the ring takes, and other calls go by threads.
#include "io/ring_backend.hpp"

#include "base/scope.hpp"
#include "io/fake/faulty_ring.hpp"
#include "io/fake/faulty_system.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <memory>

namespace gantry::io {
namespace {

using FaultyCall = FaultySystem::Call;

struct RealClock final : Clock {
    Nanoseconds now() const override { return 0; }
};

constexpr int kPlaces = 3;
constexpr std::int64_t kPiece = 10;

// An engine's part in it, and a backend whose ring takes three calls.
struct Rig {
    explicit Rig(unsigned seed) : executor(clock), system(seed) {
        auto its_ring = std::make_unique<FaultyRing>(system, kPlaces, seed);
        ring = its_ring.get();
        backend = std::make_unique<RingBackend>(system, std::move(its_ring), 2);
    }
    void drive() {
        while (!backend->idle() || executor.has_ready()) {
            backend->progress();
            executor.run_ready();
        }
    }
    RealClock clock;
    Executor executor;
    FaultySystem system;
    FaultyRing* ring;
    std::unique_ptr<RingBackend> backend;
};

// Pieces of ten bytes that adjoin, or lie so far apart; reads take the gaps along then, in one call.
Task<Status> move(Executor& executor, Backend& backend, Direction direction, std::byte* memory,
                  std::int64_t first, int pieces, std::int64_t gap, Transfer* ended) {
    Transfer transfer{.direction = direction, .sieve = static_cast<Bytes>(gap)};
    for (int i = 0; i < pieces; ++i)
        transfer.segments.push_back({first + i * (kPiece + gap), memory + i * kPiece, kPiece});
    Status status = co_await backend.run(executor, transfer, "the file");
    if (ended != nullptr) *ended = transfer;
    co_return status;
}

TEST(RingBackend, WhatEndsInAnyOrderShortOrInterruptedIsWhole) {
    constexpr int kTransfers = 50, kPieces = 4;
    constexpr std::int64_t kReach = kPieces * 2 * kPiece;
    for (unsigned seed = 1; seed <= 20; ++seed) {
        SCOPED_TRACE(seed);
        Rig rig(seed);
        std::vector<std::byte> sent(kTransfers * kPieces * kPiece), got(sent.size());
        for (std::size_t i = 0; i < sent.size(); ++i)
            sent[i] = static_cast<std::byte>(i * 3 + i / 256);
        for (const Direction direction : {Direction::write, Direction::read}) {
            std::byte* const memory = direction == Direction::write ? sent.data() : got.data();
            Scope all(rig.executor);
            for (std::int64_t i = 0; i < kTransfers; ++i)
                all.spawn(move(rig.executor, *rig.backend, direction, memory + i * kPieces * kPiece,
                               i * kReach, kPieces, seed % 2 * kPiece, nullptr));
            rig.drive();
            EXPECT_EQ(all.running(), 0);
        }
        EXPECT_EQ(got, sent);
        EXPECT_EQ(rig.ring->largest, kPlaces);
    }
}

TEST(RingBackend, AnErrorOrTheEndIsToldAsByThreads) {
    for (const int error : {EIO, ENOSPC}) {
        Rig rig(0);
        rig.system.faulty = FaultyCall::write;
        rig.system.at = 1;
        rig.system.error = error;
        std::vector<std::byte> memory(100);
        Transfer ended;
        Task<Status> task =
            move(rig.executor, *rig.backend, Direction::write, memory.data(), 0, 3, 0, &ended);
        task.start();
        rig.drive();
        ASSERT_TRUE(task.done());
        EXPECT_EQ(ended.failed, -error);
        EXPECT_EQ(ended.moved, 0u);
        EXPECT_EQ(ended.failed_at, 0);
        EXPECT_EQ(outcome_of(ended, "the file").error_class(),
                  error == EIO ? MPI_ERR_IO : MPI_ERR_NO_SPACE);

        rig.system.file.resize(10);
        Task<Status> behind =
            move(rig.executor, *rig.backend, Direction::read, memory.data(), 0, 3, 0, &ended);
        behind.start();
        rig.drive();
        EXPECT_TRUE(ended.met_end);
        EXPECT_EQ(ended.moved, 10u);
    }
}

// Each of its calls would wait for a look of the engine.
TEST(RingBackend, ATransferOfManyCallsIsAThreads) {
    Rig rig(1);
    std::vector<std::byte> memory(40, std::byte{7});
    Transfer transfer{.direction = Direction::write};
    for (int i = 0; i < 4; ++i)
        transfer.segments.push_back({i * 2 * kPiece, memory.data() + i * kPiece, kPiece});
    Task<Status> task = rig.backend->run(rig.executor, transfer, "the file");
    task.start();
    rig.drive();
    EXPECT_TRUE(task.done());
    EXPECT_EQ(transfer.moved, 40u);
    EXPECT_EQ(rig.ring->largest, 0);
    EXPECT_EQ(transfer.carrier.carrier, plan::IoCarrier::threads);
}

TEST(RingBackend, OtherCallsAreMadeByThreads) {
    Rig rig(0);
    rig.system.faulty = FaultyCall::sync;
    rig.system.at = 1;
    rig.system.error = EIO;
    std::int64_t returned = 0;
    Task<Status> asked = rig.backend->call(
        rig.executor, [](System& of) { return static_cast<std::int64_t>(of.sync(3)); }, &returned);
    asked.start();
    rig.drive();
    ASSERT_TRUE(asked.done());
    EXPECT_EQ(returned, -EIO);
}

TEST(RingBackend, WithoutItsLibraryThereIsNoRing) {
    const Result<std::unique_ptr<Ring>> none = open_ring("liburing.so.none");
    ASSERT_FALSE(none.ok());
    FaultySystem system;
    const ThreadBackend backend(system, 2, std::string(none.status().text()));
    EXPECT_EQ(backend.name().substr(0, 9), "threads (");
}

}  // namespace
}  // namespace gantry::io
