// SPDX-License-Identifier: BSD-3-Clause
//
// Windows of which a rank dies: what it held of them is given back, whoever waits for it goes on, and every
// call ends, also where ranks come to MPI_Win_free at different times.
#include "faults/revocations.hpp"
#include "sanitized.hpp"
#include "world/harness/window_parts.hpp"

#include <fmt/format.h>

#include <random>

namespace gantry::world {
namespace {

using rma::Lock;

constexpr int kVictim = 1;
constexpr Nanoseconds kDeath = 5 * kMillisecond;

// Rank 1 dies with the lock of rank 0, or as it waits for it. Ranks 2 and 3 have asked for it before they
// hear of that.
struct Inheritance {
    Lock held = Lock::exclusive, asked = Lock::exclusive;
    bool waits = false;  // rank 1, for rank 0, which has it then
};

Task<Status> lock_and_wait(Rank& rank, Nanoseconds begin, Lock kind, Nanoseconds end,
                           rma::Window& window) {
    Status status = co_await rank.sleep(rank.executor, begin);
    GANTRY_CO_TRY(status);
    status = co_await window.lock(rank.executor, 0, kind);
    GANTRY_CO_TRY(status);
    status = co_await rank.sleep(rank.executor, end);
    GANTRY_CO_TRY(status);
    status = co_await window.unlock(rank.executor, 0);
    co_return status;
}

// When all others have done what they want to do with this rank: after a death nobody waits here.
Task<Status> close_late(Rank& rank, rma::Window& window) {
    Status slept = co_await rank.sleep(rank.executor, 5 * kDeath);
    GANTRY_CO_TRY(slept);
    Status closed = co_await window.close(rank.executor);
    co_return closed;
}

Task<Status> inherit(Rank& rank, Inheritance what) {
    Bytebuffer memory(rank, Place::host, 64);
    std::unique_ptr<rma::Window> window;
    Status status = co_await open_window(rank, memory, &window);
    GANTRY_CO_TRY(status);
    if (rank.number == 0) {
        status = co_await lock_and_wait(rank, 0, what.waits ? Lock::exclusive : Lock::unchecked,
                                        2 * kDeath, *window);
    } else if (rank.number == kVictim) {
        status = co_await lock_and_wait(rank, kDeath / 5, what.held, kSecond, *window);
    } else {
        status = co_await lock_and_wait(rank, kDeath / 2, what.asked, 0, *window);
    }
    WORLD_CHECK(status.ok());
    status = co_await rank.sleep(rank.executor, 3 * kDeath);
    GANTRY_CO_TRY(status);
    // It is free for everybody again.
    status = co_await window->lock(rank.executor, 0, Lock::exclusive);
    WORLD_CHECK(status.ok());
    status = co_await window->unlock(rank.executor, 0);
    WORLD_CHECK(status.ok());
    status = co_await close_late(rank, *window);
    WORLD_CHECK(status.error_class() == MPI_ERR_PROC_ABORTED);
    co_return success();
}

void expect_heirs(Inheritance what) {
    for (const int ranks_per_node : {1, 2, 4}) {
        for (std::uint64_t seed = 1; seed <= repetitions(4); ++seed) {
            World world({.ranks = 4,
                         .ranks_per_node = ranks_per_node,
                         .seed = seed,
                         .jitter = 3 * kMicrosecond});
            world.kill_at(kDeath, kVictim);
            const Ending ending = world.run([what](Rank& rank) { return inherit(rank, what); });
            ASSERT_TRUE(ending.good()) << ending << ", " << ranks_per_node << " ranks a node";
            ASSERT_TRUE(world.settle()) << "seed " << seed;
        }
    }
}

TEST(WindowDeaths, AnExclusiveLockOfADeadRankIsGivenBack) {
    expect_heirs({.held = Lock::exclusive, .asked = Lock::exclusive});
    expect_heirs({.held = Lock::exclusive, .asked = Lock::shared});
}

TEST(WindowDeaths, ASharedLockOfADeadRankIsGivenBack) {
    expect_heirs({.held = Lock::shared, .asked = Lock::exclusive});
}

TEST(WindowDeaths, WhoDiesInTheQueueOfALockIsPassedOver) {
    for (const Lock held : {Lock::exclusive, Lock::shared})
        for (const Lock asked : {Lock::exclusive, Lock::shared})
            expect_heirs({.held = held, .asked = asked, .waits = true});
}

// --- a share that nobody knows of ----------------------------------------------------------------

// As if rank 1 had died as it took or gave back its share: nobody knows whether it is counted.
Task<Status> share_and_die(Rank& rank) {
    Bytebuffer memory(rank, Place::host, 64);
    std::unique_ptr<rma::Window> window;
    Status status = co_await open_window(rank, memory, &window);
    GANTRY_CO_TRY(status);
    if (rank.number == kVictim)
        window->node_memory.share(0, window->self).store(rma::Share::changes);
    const Lock kind = rank.number == 2 ? Lock::shared : Lock::exclusive;
    status = co_await rank.sleep(rank.executor, 2 * kDeath);
    GANTRY_CO_TRY(status);
    // A reader holds it, so that the writer waits.
    if (kind == Lock::exclusive) {
        status = co_await rank.sleep(rank.executor, kMillisecond);
        GANTRY_CO_TRY(status);
    }
    status = co_await window->lock(rank.executor, 0, kind);
    if (kind == Lock::shared) {
        WORLD_CHECK(status.ok());
        status = co_await rank.sleep(rank.executor, kDeath);
        WORLD_CHECK(status.ok());
        status = co_await window->unlock(rank.executor, 0);
        WORLD_CHECK(status.ok());
    } else {
        WORLD_CHECK(status.error_class() == MPI_ERR_PROC_ABORTED);
    }
    status = co_await close_late(rank, *window);
    WORLD_CHECK(status.error_class() == MPI_ERR_PROC_ABORTED);
    co_return success();
}

TEST(WindowDeaths, WritersHearOfAShareThatNobodyKnowsOf) {
    // The first node has ranks 0, 1 and 2; in the second world ranks 2 and 3 ask by message.
    for (const int ranks_per_node : {4, 2}) {
        World world({.ranks = 4, .ranks_per_node = ranks_per_node});
        world.kill_at(kDeath, kVictim);
        const Ending ending = world.run(share_and_die);
        ASSERT_TRUE(ending.good()) << ending;
        ASSERT_TRUE(world.settle());
    }
}

// As if rank 1 had died as it changed an item of rank 0.
Task<Status> change_and_die(Rank& rank) {
    Bytebuffer memory(rank, Place::host, 64), one(rank, Place::host, 64);
    std::unique_ptr<rma::Window> window;
    Status status = co_await open_window(rank, memory, &window);
    GANTRY_CO_TRY(status);
    if (rank.number == kVictim) {
        rma::ControlBlock* const control = window->target(0).control;
        WORLD_CHECK(control != nullptr && control->try_accumulate(kVictim));
    }
    status = co_await rank.sleep(rank.executor, kMillisecond);
    GANTRY_CO_TRY(status);
    if (rank.number != kVictim) {
        status = co_await window->lock(rank.executor, 0, Lock::shared);
        WORLD_CHECK(status.ok());
        Status begun = begin(rank, *window, one, {rma::Verb::accumulate, 0, 0, 8});
        WORLD_CHECK(begun.ok());
        status = co_await window->unlock(rank.executor, 0);
        WORLD_CHECK(status.ok());
    }
    status = co_await close_late(rank, *window);
    WORLD_CHECK(!status.ok());
    co_return success();
}

TEST(WindowDeaths, NobodyWaitsForAChangeThatADeadRankHadBegun) {
    for (const int ranks_per_node : {4, 2}) {
        World world({.ranks = 4, .ranks_per_node = ranks_per_node});
        world.kill_at(kDeath, kVictim);
        const Ending ending = world.run(change_and_die);
        ASSERT_TRUE(ending.good()) << ending;
        ASSERT_TRUE(world.settle());
    }
}

// --- ranks that come to MPI_Win_free at different times ------------------------------------------

// As MPI_Win_free. The memory stays, since others may not have heard yet that this rank has left.
Task<Status> free_window(Rank& rank, std::unique_ptr<rma::Window>& window) {
    Status closed = co_await window->close(rank.executor);
    window.reset();
    Status slept = co_await rank.sleep(rank.executor, 20 * kDeath);
    GANTRY_CO_TRY(slept);
    co_return closed;
}

// Some lock the parts of others, in host or device memory, while these are in MPI_Win_free already.
Task<Status> free_at_different_times(Rank& rank, std::uint64_t seed, bool somebody_dies) {
    std::mt19937_64 random(seed * 31 + static_cast<unsigned>(rank.number));
    const bool on_device = seed % 2 == 0;
    Bytebuffer memory(rank, on_device ? Place::device : Place::host, 64 * kKiB),
        origin(rank, random() % 2 == 0 ? Place::device : Place::host, 64 * kKiB);
    std::unique_ptr<rma::Window> window;
    Status status = co_await open_window(rank, memory, &window);
    if (!status.ok()) {
        WORLD_CHECK(somebody_dies);
        co_return success();
    }
    const int epochs = static_cast<int>(random() % 8);
    for (int epoch = 0; epoch < epochs; ++epoch) {
        const int to = static_cast<int>(random() % static_cast<unsigned>(rank.all.size()));
        const Lock kind = random() % 4 != 0 ? Lock::exclusive : Lock::shared;
        const rma::Verb verbs[] = {rma::Verb::put, rma::Verb::get, rma::Verb::accumulate};
        const Bytes bytes = Bytes{8} << random() % 12;
        status = co_await window->lock(rank.executor, to, kind);
        if (!status.ok()) break;
        Status begun = begin(rank, *window, origin, {verbs[random() % 3], to, 0, bytes});
        status = co_await rank.sleep(rank.executor, random() % 200 * kMicrosecond);
        WORLD_CHECK(status.ok());
        status = co_await window->unlock(rank.executor, to);
        if (status.ok()) status = begun;
        if (!status.ok() && window->target(to).gone.ok()) break;
    }
    WORLD_CHECK(status.ok() || (somebody_dies && status.error_class() == MPI_ERR_PROC_ABORTED));
    status = co_await free_window(rank, window);
    WORLD_CHECK(status.ok() || somebody_dies);  // late, perhaps
    co_return success();
}

TEST(WindowDeaths, LocksAreHadOfRanksThatAreInFreeAlready) {
    for (std::uint64_t seed = 1; seed <= repetitions(120); ++seed) {
        World world({.ranks = 4,
                     .ranks_per_node = 1 << seed % 3,
                     .seed = seed,
                     .jitter = 5 * kMicrosecond});
        const Ending ending =
            world.run([seed](Rank& rank) { return free_at_different_times(rank, seed, false); });
        ASSERT_TRUE(ending.good()) << ending;
        ASSERT_TRUE(world.settle()) << "seed " << seed;
    }
}

TEST(WindowDeaths, WhoLeavesAWindowAfterADeathIsNotWaitedFor) {
    for (std::uint64_t seed = 1; seed <= repetitions(240); ++seed) {
        World world({.ranks = 4,
                     .ranks_per_node = 1 << seed % 3,
                     .seed = seed,
                     .jitter = 5 * kMicrosecond});
        world.kill_at(static_cast<Nanoseconds>(seed * 7919 % 1500) * kMicrosecond,
                      static_cast<int>(seed / 3 % 4));
        const Ending ending =
            world.run([seed](Rank& rank) { return free_at_different_times(rank, seed, true); });
        ASSERT_TRUE(ending.good()) << ending;
        ASSERT_TRUE(world.settle()) << "seed " << seed;
    }
}

// One rank has no memory for its part: who hears so early must not look like a rank that is gone.
Task<Status> refuse_a_part(Rank& rank, int refused) {
    Bytebuffer memory(rank, Place::host, 64);
    rma::Wanted wanted;
    wanted.base = rank.number == refused ? nullptr : memory.address();
    wanted.bytes = 64;
    std::unique_ptr<rma::Window> window;
    Status status = co_await open_window(rank, wanted, &window);
    WORLD_CHECK(status.error_class() == MPI_ERR_BASE);
    status = co_await open_window(rank, memory, &window);
    GANTRY_CO_TRY(status);
    status = co_await window->close(rank.executor);
    co_return status;
}

TEST(WindowDeaths, AWindowThatOneRankRefusesIsRefusedByAllForThatReason) {
    for (std::uint64_t seed = 1; seed <= repetitions(60); ++seed) {
        World world({.ranks = 5,
                     .ranks_per_node = 1 << seed % 3,
                     .seed = seed,
                     .jitter = 5 * kMicrosecond});
        const Ending ending = world.run(
            [seed](Rank& rank) { return refuse_a_part(rank, static_cast<int>(seed / 3 % 5)); });
        ASSERT_TRUE(ending.good()) << ending;
    }
}

// --- fences, and post and start ------------------------------------------------------------------

Task<Status> synchronise_until_one_dies(Rank& rank, std::uint64_t seed) {
    Bytebuffer memory(rank, seed % 2 == 0 ? Place::device : Place::host, 4096),
        origin(rank, Place::host, 4096);
    std::unique_ptr<rma::Window> window;
    Status status = co_await open_window(rank, memory, &window);
    if (!status.ok()) co_return success();
    const int ranks = rank.all.size(), next = (rank.number + 1) % ranks,
              last = (rank.number + ranks - 1) % ranks;
    for (int round = 0; status.ok() && round < 1000; ++round) {
        status = co_await rank.sleep(rank.executor, 5 * kMicrosecond);
        GANTRY_CO_TRY(status);
        if (seed / 2 % 2 == 0) {
            status = co_await window->fence(rank.executor, 0);
            if (!status.ok()) break;
            status = begin(rank, *window, origin, {rma::Verb::put, next, 0, 2048});
            if (!status.ok()) break;
            status = co_await window->fence(rank.executor, 0);
            continue;
        }
        const std::vector<int> origins{last}, targets{next};
        status = co_await window->post(rank.executor, origins, 0);
        if (!status.ok()) break;
        status = co_await window->start(rank.executor, targets, 0);
        Status begun =
            status.ok() ? begin(rank, *window, origin, {rma::Verb::put, next, 0, 2048}) : success();
        Status completed = co_await window->complete(rank.executor);
        Status waited = co_await window->wait(rank.executor);
        for (const Status* each : {&begun, &completed, &waited})
            if (status.ok()) status = *each;
    }
    WORLD_CHECK(status.error_class() == MPI_ERR_PROC_ABORTED);
    status = co_await free_window(rank, window);
    WORLD_CHECK(!status.ok());
    co_return success();
}

TEST(WindowDeaths, FencesAndExposuresEnd) {
    for (std::uint64_t seed = 1; seed <= repetitions(120); ++seed) {
        World world({.ranks = 4,
                     .ranks_per_node = 1 << seed % 3,
                     .seed = seed,
                     .jitter = 5 * kMicrosecond});
        world.kill_at(static_cast<Nanoseconds>(300 + seed * 7919 % 900) * kMicrosecond,
                      static_cast<int>(seed / 3 % 4));
        const Ending ending =
            world.run([seed](Rank& rank) { return synchronise_until_one_dies(rank, seed); });
        ASSERT_TRUE(ending.good()) << ending;
        ASSERT_TRUE(world.settle()) << "seed " << seed;
    }
}

// --- revoked -------------------------------------------------------------------------------------

// Ranks that can revoke a window, as mpi does it (mpi/faults/revoke.cpp).
struct Revocable {
    explicit Revocable(Options options)
        : world(std::move(options)), windows(static_cast<std::size_t>(world.ranks())) {
        for (int rank = 0; rank < world.ranks(); ++rank) {
            Rank& its = world.rank(rank);
            revocations.push_back(std::make_unique<faults::Revocations>(
                its.transfer, its.messenger, [this, &its](std::uint32_t) {
                    if (rma::Window* const window = of(its))
                        window->revoke(failure(MPIX_ERR_REVOKED, "the window is revoked"));
                    return its.all.peers;
                }));
        }
    }
    rma::Window*& of(Rank& rank) { return windows[static_cast<std::size_t>(rank.number)]; }
    World world;
    std::vector<rma::Window*> windows;
    std::vector<std::unique_ptr<faults::Revocations>> revocations;
};

// Whoever's program ends early is no more asked.
struct Known {
    Known(rma::Window*& its_place, rma::Window* window) : place(its_place) { place = window; }
    ~Known() { place = nullptr; }
    Known(const Known&) = delete;
    Known& operator=(const Known&) = delete;
    rma::Window*& place;
};

// Everybody waits for something that never comes; rank 0 revokes.
Task<Status> wait_in_vain(Rank& rank, std::uint64_t seed, Revocable& all) {
    Bytebuffer memory(rank, Place::host, 4096), origin(rank, Place::host, 4096);
    std::unique_ptr<rma::Window> window;
    Status status = co_await open_window(rank, memory, &window);
    GANTRY_CO_TRY(status);
    const Known known(all.of(rank), window.get());
    if (rank.number == 0) {
        status = co_await window->lock(rank.executor, 0, Lock::exclusive);
        GANTRY_CO_TRY(status);
    }
    status = co_await meet(rank, 9);
    GANTRY_CO_TRY(status);
    if (rank.number == 0) {
        status = co_await rank.sleep(rank.executor, seed * 50 * kMicrosecond);
        GANTRY_CO_TRY(status);
        all.revocations[0]->revoke(p2p::base_context(window->group.context));
        // Whoever has not heard of it could have the lock.
        status = co_await rank.sleep(rank.executor, kDeath);
        GANTRY_CO_TRY(status);
    }
    const std::vector<int> others{(rank.number + 1) % rank.all.size()};
    switch (rank.number == 0 ? 4 : (static_cast<std::uint64_t>(rank.number) + seed) % 4) {
        case 0: status = co_await window->lock(rank.executor, 0, Lock::exclusive); break;
        case 1: status = co_await window->fence(rank.executor, 0); break;
        case 2: status = co_await window->start(rank.executor, others, 0); break;
        case 3:
            status = co_await window->post(rank.executor, others, 0);
            if (status.ok()) status = co_await window->wait(rank.executor);
            break;
        default: status = co_await window->unlock(rank.executor, 0); break;
    }
    WORLD_CHECK(status.error_class() == MPIX_ERR_REVOKED);
    // It may have heard of it by the failure of another rank.
    status = co_await rank.sleep(rank.executor, kDeath);
    GANTRY_CO_TRY(status);
    status = co_await window->fence(rank.executor, 0);
    WORLD_CHECK(!status.ok());
    status = begin(rank, *window, origin, {rma::Verb::put, 0, 0, 8});
    WORLD_CHECK(!status.ok());
    all.of(rank) = nullptr;
    status = co_await free_window(rank, window);
    WORLD_CHECK(status.error_class() == MPIX_ERR_REVOKED);
    co_return success();
}

TEST(WindowDeaths, EverybodyWhoWaitsForARevokedWindowGoesOn) {
    for (std::uint64_t seed = 1; seed <= repetitions(24); ++seed) {
        Revocable all({.ranks = 5,
                       .ranks_per_node = static_cast<int>(1 + seed % 5),
                       .seed = seed,
                       .jitter = 5 * kMicrosecond});
        const Ending ending =
            all.world.run([seed, &all](Rank& rank) { return wait_in_vain(rank, seed, all); });
        ASSERT_TRUE(ending.good()) << ending;
        ASSERT_TRUE(all.world.settle()) << "seed " << seed;
    }
}

}  // namespace
}  // namespace gantry::world
