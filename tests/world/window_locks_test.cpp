// SPDX-License-Identifier: BSD-3-Clause
//
// Who waits for the lock of a window gets it in turn: whichever ranks take it again and again, and whether
// they reach its word themselves or ask the target by message.
#include "sanitized.hpp"
#include "world/harness/window_parts.hpp"

namespace gantry::world {
namespace {

using rma::Lock;

// All ranks but the last one lock rank 0 as `again` all the time, and hold it so that their epochs overlap;
// the last one locks it once.
struct Contest {
    Lock again = Lock::shared, once = Lock::exclusive;
    int ranks = 4;
    bool target_alone = false;  // of the others only rank 0 takes part
    int granted = 0;            // epochs of those that lock again and again
    int when_asked = -1, when_granted = -1;
};
constexpr int kEpochs = 200;

Task<Status> contend(Rank& rank, Contest& contest) {
    Bytebuffer memory(rank, Place::host, 64);
    std::unique_ptr<rma::Window> window;
    Status status = co_await open_window(rank, memory, &window);
    GANTRY_CO_TRY(status);
    if (rank.number == contest.ranks - 1) {
        status = co_await rank.sleep(rank.executor, kMillisecond);
        GANTRY_CO_TRY(status);
        contest.when_asked = contest.granted;
        status = co_await window->lock(rank.executor, 0, contest.once);
        GANTRY_CO_TRY(status);
        contest.when_granted = contest.granted;
        status = co_await window->unlock(rank.executor, 0);
        GANTRY_CO_TRY(status);
    } else if (rank.number == 0 || !contest.target_alone) {
        for (int i = 0; i < kEpochs && contest.when_granted < 0; ++i) {
            status = co_await window->lock(rank.executor, 0, contest.again);
            GANTRY_CO_TRY(status);
            ++contest.granted;
            status = co_await rank.sleep(rank.executor, (40 + rank.number * 13) * kMicrosecond);
            GANTRY_CO_TRY(status);
            status = co_await window->unlock(rank.executor, 0);
            GANTRY_CO_TRY(status);
        }
    }
    status = co_await window->close(rank.executor);
    co_return status;
}

void expect_a_turn(Contest contest, int ranks_per_node, std::uint64_t seed) {
    World world({.ranks = contest.ranks,
                 .ranks_per_node = ranks_per_node,
                 .seed = seed,
                 .jitter = 3 * kMicrosecond});
    const Ending ending = world.run([&contest](Rank& rank) { return contend(rank, contest); });
    ASSERT_TRUE(ending.good()) << ending;
    ASSERT_TRUE(world.settle()) << "seed " << seed;
    // Of each at most the epoch that it asked for before, and one while the request was on its way.
    EXPECT_LE(contest.when_granted - contest.when_asked, 2 * contest.ranks)
        << "seed " << seed << ", " << ranks_per_node << " ranks a node";
}

TEST(WindowLocks, AWriterHasItsTurnAmongReaders) {
    for (std::uint64_t seed = 1; seed <= repetitions(8); ++seed)
        for (const int ranks_per_node : {1, 2, 4}) {
            expect_a_turn({}, ranks_per_node, seed);
            expect_a_turn({.target_alone = true}, ranks_per_node, seed);
        }
}

TEST(WindowLocks, AReaderOrWriterHasItsTurnAmongWriters) {
    for (std::uint64_t seed = 1; seed <= repetitions(8); ++seed)
        for (const int ranks_per_node : {1, 2, 4})
            for (const Lock once : {Lock::shared, Lock::exclusive}) {
                expect_a_turn({.again = Lock::exclusive, .once = once}, ranks_per_node, seed);
                expect_a_turn({.again = Lock::exclusive, .once = once, .target_alone = true},
                              ranks_per_node, seed);
            }
}

// Rank 1 holds the lock shared until rank 2 has had it, too; rank 3 asks for it exclusively between them.
Task<Status> wait_for_another_reader(Rank& rank) {
    Bytebuffer memory(rank, Place::host, 64);
    std::unique_ptr<rma::Window> window;
    Status status = co_await open_window(rank, memory, &window);
    GANTRY_CO_TRY(status);
    if (rank.number > 0) {
        constexpr Nanoseconds kTurns[] = {0, kMillisecond, 3 * kMillisecond, 2 * kMillisecond};
        status = co_await rank.sleep(rank.executor, kTurns[rank.number]);
        GANTRY_CO_TRY(status);
        const Lock kind = rank.number == 3 ? Lock::exclusive : Lock::shared;
        status = co_await window->lock(rank.executor, 0, kind);
        GANTRY_CO_TRY(status);
        if (rank.number == 1) {
            Received told = co_await receive(rank, kNothing, 2, 7);
            GANTRY_CO_TRY(told.status);
        }
        if (rank.number == 2) {
            status = co_await send(rank, kNothing, 1, 7);
            GANTRY_CO_TRY(status);
        }
        status = co_await window->unlock(rank.executor, 0);
        GANTRY_CO_TRY(status);
    }
    status = co_await window->close(rank.executor);
    co_return status;
}

TEST(WindowLocks, AReaderThatAnotherOneWaitsForComesInAlthoughAWriterWaits) {
    for (const int ranks_per_node : {1, 2, 4}) {
        World world({.ranks = 4, .ranks_per_node = ranks_per_node});
        const Ending ending = world.run(wait_for_another_reader);
        ASSERT_TRUE(ending.good()) << ending;
        ASSERT_TRUE(world.settle());
    }
}

// Rank 2, of another node, waits for the lock that rank 1 has; rank 0, which would take it for it,
// computes. Rank 1 goes on all the same.
Task<Status> lock_while_the_target_computes(Rank& rank, Nanoseconds* took) {
    Bytebuffer memory(rank, Place::host, 64);
    std::unique_ptr<rma::Window> window;
    Status status = co_await open_window(rank, memory, &window);
    GANTRY_CO_TRY(status);
    if (rank.number == 0) {
        status = co_await rank.sleep(rank.executor, 2 * kMillisecond);
        GANTRY_CO_TRY(status);
        rank.work(kSecond);
    } else if (rank.number < 3) {
        status = co_await rank.sleep(rank.executor, rank.number * 300 * kMicrosecond);
        GANTRY_CO_TRY(status);
        for (int i = 0; i < 3; ++i) {
            const Nanoseconds begin = rank.processor.now();
            status = co_await window->lock(rank.executor, 0, Lock::exclusive);
            GANTRY_CO_TRY(status);
            if (rank.number == 1) *took = std::max(*took, rank.processor.now() - begin);
            status = co_await rank.sleep(rank.executor, 3 * kMillisecond);
            GANTRY_CO_TRY(status);
            status = co_await window->unlock(rank.executor, 0);
            GANTRY_CO_TRY(status);
        }
    }
    status = co_await window->close(rank.executor);
    co_return status;
}

TEST(WindowLocks, NobodyWaitsForATurnOfWhoDoesNotTakeIt) {
    World world({.ranks = 4, .ranks_per_node = 2});
    Nanoseconds took = 0;
    const Ending ending =
        world.run([&took](Rank& rank) { return lock_while_the_target_computes(rank, &took); });
    ASSERT_TRUE(ending.good()) << ending;
    ASSERT_TRUE(world.settle());
    EXPECT_LT(took, 20 * kMillisecond);
}

}  // namespace
}  // namespace gantry::world
