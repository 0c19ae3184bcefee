// SPDX-License-Identifier: BSD-3-Clause
//
// Opening a peer's memory stalls what the device has to do (docs/design/0003, 4): it waits for a
// moment without work, where there is one. A program that never rests opens all the same, once the
// messages that were staged meanwhile have paid twice.
#include "world/harness/programs.hpp"

#include <deque>

namespace gantry::world {
namespace {

struct Traffic {
    int in_flight = 8;
    bool rests = false;  // when so many have come, until all of them have
    int messages = 400;
    Bytes bytes = kMiB;
    int opened_at = -1;                           // as the receiver sees it
    std::uint64_t openings = 0, beside_work = 0;  // of both ranks
};

Task<Status> finish_one(Rank& rank, std::deque<Result<p2p::Request*>>& requests) {
    Received ended = co_await finish(rank.executor, rank, std::move(requests.front()));
    requests.pop_front();
    co_return ended.status;
}

// From GPU 0 to GPU 1. Each of those in flight has a place of its own.
Task<Status> traffic(Rank& rank, Traffic& test) {
    const auto places = static_cast<Bytes>(test.in_flight);
    Bytebuffer buffer(rank, Place::device, places * test.bytes, rank.number);
    if (rank.number == 0)
        buffer.fill(1);
    else
        buffer.clear();
    std::deque<Result<p2p::Request*>> requests;
    for (int message = 0; message < test.messages; ++message) {
        const int at = message % test.in_flight;
        for (bool more = test.rests && at == 0; more && !requests.empty();) {
            Status ended = co_await finish_one(rank, requests);
            GANTRY_CO_TRY(ended);
        }
        if (requests.size() == places) {
            Status ended = co_await finish_one(rank, requests);
            GANTRY_CO_TRY(ended);
        }
        const p2p::Buffer part = buffer.part(static_cast<Bytes>(at) * test.bytes, test.bytes);
        requests.push_back(
            rank.number == 0 ? rank.messenger.isend(rank.all, part, 1, at, p2p::SendMode::standard)
                             : rank.messenger.ireceive(rank.all, part, 0, at));
        if (rank.number == 1 && test.opened_at < 0 && rank.device.counts().opens > 0)
            test.opened_at = message;
    }
    while (!requests.empty()) {
        Status ended = co_await finish_one(rank, requests);
        GANTRY_CO_TRY(ended);
    }
    WORLD_CHECK(rank.number == 0 || buffer.holds(1, buffer.bytes()));
    co_return success();
}

void run(Traffic& test, std::uint64_t seed) {
    World world({.machine = "h200", .ranks_per_node = 2, .seed = seed, .jitter = kMicrosecond});
    const Ending ending = world.run([&test](Rank& rank) { return traffic(rank, test); });
    EXPECT_TRUE(ending.good()) << ending;
    for (int rank = 0; rank < 2; ++rank) {
        test.openings += world.rank(rank).device.counts().opens;
        test.beside_work += world.rank(rank).device.counts().opens_beside_work;
    }
}

TEST(BusyOpening, WaitsForAMomentWithoutWork) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        Traffic alone{.in_flight = 1}, test{.rests = true};
        run(alone, seed);
        run(test, seed);
        EXPECT_EQ(test.openings, 1u) << seed;
        EXPECT_NEAR(test.opened_at, alone.opened_at, test.in_flight) << seed;
        EXPECT_EQ(test.beside_work, 0u) << seed;
    }
}

TEST(BusyOpening, ComesAllTheSameWhereNobodyRests) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        Traffic alone{.in_flight = 1}, test;
        run(alone, seed);
        run(test, seed);
        EXPECT_EQ(alone.openings, 1u) << seed;
        EXPECT_EQ(test.openings, 1u) << seed;
        EXPECT_EQ(test.beside_work, 1u) << seed;
        EXPECT_NEAR(test.opened_at, 2 * alone.opened_at, test.in_flight) << seed;
    }
}

}  // namespace
}  // namespace gantry::world
