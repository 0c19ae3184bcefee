// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives between nodes whose ranks have told each other that they bring device memory: they are reduced
// inside nodes first, where GPUs reach each other.
#include "sanitized.hpp"
#include "world/harness/collectives.hpp"

#include <numeric>

namespace gantry::world {
namespace {

constexpr Bytes kVector = kMiB;
constexpr int kCalls = 12, kTold = 3;  // the ranks tell each other behind the third call

struct Calls {
    What what;
    int number = kTold + 1;
    bool background = false;
    Bytes sent[kCalls] = {};  // by the network, for each call
};

// Blocking calls, one behind the other, as `what` says; every result is checked.
Task<Status> several(Rank& rank, Calls& calls, const std::vector<What>& by_call) {
    std::vector<int> members(static_cast<std::size_t>(rank.world.ranks()));
    std::iota(members.begin(), members.end(), 0);
    Communicator all(rank, 77, members, plan::Algorithm::automatic);
    for (int call = 0; call < calls.number; ++call) {
        const What& what = by_call.empty() ? calls.what : by_call[static_cast<std::size_t>(call)];
        Operation operation(rank, all, what);
        operation.fill(call);
        Status met = co_await meet(rank, 100 + call);
        GANTRY_CO_TRY(met);
        const Bytes before = rank.world.network().bytes_on_the_wire();
        Task<Status> running;
        if (calls.background)
            running = operation.run(rank.executor, all.background());
        else
            running = all.with_what_follows(operation.run(rank.executor, all.blocking()));
        Status done = co_await std::move(running);
        GANTRY_CO_TRY(done);
        WORLD_CHECK(operation.is_right());
        met = co_await meet(rank, 200 + call);
        GANTRY_CO_TRY(met);
        if (rank.number == 0) calls.sent[call] = rank.world.network().bytes_on_the_wire() - before;
    }
    co_return success();
}

What of(Kind kind, int ranks, Bytes bytes) {
    What what;
    what.kind = kind;
    what.count = bytes / sizeof(std::int64_t);
    what.gpus = 4;
    what.places.assign(static_cast<std::size_t>(ranks), {Place::device, Place::device});
    return what;
}

constexpr int kRanks = 8;

void run(Calls& calls, const std::vector<What>& by_call = {}, std::uint64_t seed = 1) {
    World world({.machine = "h200", .ranks = kRanks, .ranks_per_node = 4, .seed = seed});
    const Ending ending = world.run([&](Rank& rank) { return several(rank, calls, by_call); });
    ASSERT_TRUE(ending.good()) << ending;
    ASSERT_TRUE(world.settle());
}

TEST(KnownMemory, LongVectorsOfGpusAreReducedInsideNodesFirst) {
    for (const Kind kind : {Kind::allreduce, Kind::reduce}) {
        Calls calls{.what = of(kind, kRanks, kVector)};
        run(calls);
        const Bytes node = kVector;  // what a node has to say, once
        EXPECT_GT(calls.sent[kTold - 1], 2 * node * 11 / 10) << describe(calls.what);
        EXPECT_LE(calls.sent[kTold], 2 * node * 11 / 10) << describe(calls.what);
    }
}

TEST(KnownMemory, NothingIsKnownOfMemoryThatIsMixedAndOfNonblockingCalls) {
    Calls mixed{.what = of(Kind::allreduce, kRanks, kVector)};
    mixed.what.places[5] = {Place::host, Place::host};
    run(mixed);
    Calls background{.what = of(Kind::allreduce, kRanks, kVector), .background = true};
    run(background);
    for (int call = 1; call < mixed.number; ++call) {
        EXPECT_GT(mixed.sent[call], mixed.sent[0] * 9 / 10) << call;
        EXPECT_GT(background.sent[call], background.sent[0] * 9 / 10) << call;
    }
}

// What is known is a guess about costs: calls that bring other memory end as rightly.
TEST(KnownMemory, AWrongGuessCostsNoByte) {
    for (std::uint64_t seed = 1; seed <= repetitions(8); ++seed) {
        std::vector<What> calls;
        std::uint64_t dice = seed * 0x9E3779B97F4A7C15u;
        const auto roll = [&dice](std::uint64_t sides) {
            dice = dice * 6364136223846793005u + 1442695040888963407u;
            return (dice >> 33) % sides;
        };
        constexpr Kind kKinds[] = {Kind::allreduce, Kind::bcast, Kind::reduce, Kind::barrier,
                                   Kind::reduce_scatter};
        for (int call = 0; call < kCalls; ++call) {
            What what = of(kKinds[roll(5)], kRanks, Bytes{8} << roll(15));
            what.root = static_cast<int>(roll(kRanks));
            if (call > kTold)
                for (auto& [from, into] : what.places)
                    from = into = roll(2) == 0 ? Place::host : Place::device;
            calls.push_back(what);
        }
        Calls some{.what = {}, .number = kCalls};
        run(some, calls, seed);
    }
}

}  // namespace
}  // namespace gantry::world
