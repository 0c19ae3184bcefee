// SPDX-License-Identifier: BSD-3-Clause
//
// Opening a peer's memory stalls what the device has to do (docs/design/mappings.md): it waits for
// a moment without work, where there is one. A program that never rests opens all the same, once the
// messages that were staged meanwhile have paid twice.
#include "world/harness/openings.hpp"
#include "world/harness/programs.hpp"

#include <deque>

namespace gantry::world {
namespace {

constexpr int kMessages = 400;
constexpr Bytes kBytes = kMiB;

struct Traffic {
    int in_flight = 1;
    bool rests = false;                           // when so many have come, until all of them have
    int opened_at = -1;                           // the message that the receiver posted next
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
    Bytebuffer buffer(rank, Place::device, places * kBytes, rank.number);
    std::deque<Result<p2p::Request*>> requests;
    for (int message = 0; message < kMessages; ++message) {
        const int at = message % test.in_flight;
        const auto window = static_cast<std::uint64_t>(message / test.in_flight);
        const std::size_t most = test.rests && at == 0 ? 0 : places - 1;
        while (requests.size() > most) {
            Status ended = co_await finish_one(rank, requests);
            GANTRY_CO_TRY(ended);
        }
        if (requests.empty() && rank.number == 0)
            buffer.fill(window);
        else if (requests.empty()) {
            WORLD_CHECK(window == 0 || buffer.holds(window - 1, buffer.bytes()));
            buffer.clear();
        }
        const p2p::Buffer part = buffer.part(static_cast<Bytes>(at) * kBytes, kBytes);
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
    co_return success();
}

// `planned`: every message is planned and has a whole RTS; else those like the one before are
// selection hits.
Traffic after(Traffic test, bool planned) {
    World world({.machine = "h200",
                 .ranks_per_node = 2,
                 .seed = 1,
                 .mechanisms = planned ? "-selection_cache,-rts_templates,-one_copy,-anchors"
                                       : "all,-anchors",
                 .change_machine = &dear_openings});
    const Ending ending = world.run([&test](Rank& rank) { return traffic(rank, test); });
    EXPECT_TRUE(ending.good()) << ending;
    for (int rank = 0; rank < 2; ++rank) {
        test.openings += world.rank(rank).device.counts().opens;
        test.beside_work += world.rank(rank).device.counts().opens_beside_work;
    }
    EXPECT_EQ(test.openings, 1u);
    return test;
}

class BusyOpening : public testing::TestWithParam<bool> {};

TEST_P(BusyOpening, WaitsForAMomentWithoutWork) {
    EXPECT_EQ(after({}, GetParam()).opened_at, 57);
    const Traffic windows = after({.in_flight = 8, .rests = true}, GetParam());
    EXPECT_EQ(windows.opened_at, 64) << "the first of a window behind that";
    EXPECT_EQ(windows.beside_work, 0u);
}

TEST_P(BusyOpening, ComesAllTheSameWhereNobodyRests) {
    const Traffic never = after({.in_flight = 8}, GetParam());
    EXPECT_EQ(never.opened_at, 114) << "twice as many";
    EXPECT_EQ(never.beside_work, 1u);
}

INSTANTIATE_TEST_SUITE_P(Paths, BusyOpening, testing::Bool(), [](const auto& planned) {
    return planned.param ? "Planned" : "SelectionHits";
});

}  // namespace
}  // namespace gantry::world
