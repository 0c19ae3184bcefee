// SPDX-License-Identifier: BSD-3-Clause
//
// Several rails between two nodes: how much faster they are together, by policy; and rails that fail
// and come back at any step of any message.
#include "plan/coll_facts.hpp"
#include "sanitized.hpp"
#include "world/harness/programs.hpp"

#include <memory>
#include <mpi.h>
#include <string>
#include <vector>

namespace gantry::world {
namespace {

struct Rails {
    int count = 2;
    std::vector<double> rates{};  // relative to the machine's; empty: all alike
    double cap = 0;  // of all rails of a rank, in and out, relative to one rail; 0: none
    std::string policy = "weighted";
};

Options with(const Rails& rails, std::uint64_t seed = 1) {
    Options options;
    options.machine = "c2050-qdr";
    options.seed = seed;
    options.change_machine = [rails](model::Machine& machine) {
        model::Link& link = machine.network;
        link.rails = rails.count;
        for (const double rate : rails.rates)
            link.rail_rates.push_back(rate * link.rate.peak());
        link.shared_cap = rails.cap * link.rate.peak();
    };
    options.change_config = [rails](config::Config& config) { config.rail_policy = rails.policy; };
    return options;
}

enum class Directions : std::uint8_t { one, both };

// Messages of host memory from rank 0 to rank 1, or both ways at once.
Task<Status> stream(Rank& rank, int messages, Bytes bytes, Directions directions) {
    Bytebuffer out(rank, Place::host, bytes), in(rank, Place::host, bytes);
    out.fill(static_cast<std::uint64_t>(rank.number));
    const int peer = 1 - rank.number;
    for (int i = 0; i < messages; ++i) {
        std::vector<Result<p2p::Request*>> requests;
        if (rank.number == 1 || directions == Directions::both)
            requests.push_back(rank.messenger.ireceive(rank.all, in.whole(), peer, i));
        if (rank.number == 0 || directions == Directions::both)
            requests.push_back(
                rank.messenger.isend(rank.all, out.whole(), peer, i, p2p::SendMode::standard));
        for (Result<p2p::Request*>& request : requests) {
            Received ended = co_await finish(rank.executor, rank, std::move(request));
            GANTRY_CO_TRY(ended.status);
        }
    }
    if (rank.number == 1 || directions == Directions::both)
        WORLD_CHECK(in.holds(static_cast<std::uint64_t>(peer), bytes));
    co_return success();
}

double time_of(const Rails& rails, int messages, Bytes bytes,
               Directions directions = Directions::one) {
    World world(with(rails));
    const Ending ending =
        world.run([=](Rank& rank) { return stream(rank, messages, bytes, directions); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_TRUE(world.settle());
    return static_cast<double>(ending.time);
}

// Published: two adapters give almost twice the throughput and half the latency of large messages;
// two ports behind one PCI Express bus 2620 MB/s both ways together where one port gives 1910.
TEST(Rails, TwoAdaptersCarryAlmostTwiceAsMuch) {
    for (const char* policy : {"even", "weighted"}) {
        const double one = time_of({.count = 1}, 1, 64 * kMiB),
                     two = time_of({.count = 2, .policy = policy}, 1, 64 * kMiB);
        EXPECT_GE(one / two, 1.95) << policy;
        EXPECT_LE(time_of({.count = 2, .policy = policy}, 1, 4 * kMiB) /
                      time_of({.count = 1}, 1, 4 * kMiB),
                  0.55)
            << policy;
    }
    EXPECT_GE(time_of({.count = 1}, 1, 64 * kMiB) / time_of({.count = 4}, 1, 64 * kMiB), 3.6);
}

TEST(Rails, TwoPortsBehindOneBusCarryWhatTheBusDoes) {
    constexpr double kPublished = 2620.0 / 1910.0;
    // One port both ways together: twice a rail, which is less than the bus carries.
    const double cap = 2 * kPublished;
    const double one = time_of({.count = 1, .cap = cap}, 8, 16 * kMiB, Directions::both),
                 two = time_of({.count = 2, .cap = cap}, 8, 16 * kMiB, Directions::both);
    EXPECT_NEAR(one / two, kPublished, 0.03 * kPublished);
}

TEST(Rails, UnequalRailsAreUsedByTheirRates) {
    const std::vector<double> rates = {1, 1, 1, 0.5};
    const int messages = 16;
    const double one = time_of({.count = 1}, messages, 16 * kMiB);
    const double weighted = time_of({.count = 4, .rates = rates}, messages, 16 * kMiB);
    const double even =
        time_of({.count = 4, .rates = rates, .policy = "even"}, messages, 16 * kMiB);
    EXPECT_GE(one / weighted, 0.9 * 3.5);
    EXPECT_LE(one / even, 2.05);  // four times the slowest
}

TEST(Rails, UnequalRailsAreToldToThePlannerByTheirSum) {
    World world(with({.count = 4, .rates = {1, 1, 1, 0.5}}));
    const double sum = 3.5 * world.machine().network.rate.peak();
    const transfer::Endpoint& peer = world.rank(0).transfer.endpoints.to(1);
    const transport::PeerFacts facts = peer.transport->facts(1);
    EXPECT_DOUBLE_EQ(facts.bytes_per_second * facts.rails, sum);
    EXPECT_DOUBLE_EQ(plan::coll_way_of(facts).bytes_per_second, sum);
    EXPECT_DOUBLE_EQ(plan::coll_facts_of(world.machine()).between.bytes_per_second, sum);
}

TEST(Rails, BindingAndSmallMessagesUseTheHomeRailAlone) {
    const double one = time_of({.count = 1}, 4, 16 * kMiB),
                 bound = time_of({.count = 2, .policy = "binding"}, 4, 16 * kMiB);
    EXPECT_NEAR(bound / one, 1, 0.01);
}

// All kinds of memory at both ends and sizes of every protocol, checked as they come.
Task<Status> mix(Rank& rank, int messages) {
    constexpr Place kPlaces[] = {Place::host, Place::device, Place::pinned};
    const Bytes sizes[] = {0, 8, 4 * kKiB, 100'000, kMiB + 13, 5 * kMiB};
    const int peer = 1 - rank.number;
    std::vector<std::unique_ptr<Bytebuffer>> out, in;
    std::vector<Result<p2p::Request*>> requests;
    for (int i = 0; i < messages; ++i) {
        const Bytes bytes = sizes[i % 6];
        in.push_back(std::make_unique<Bytebuffer>(rank, kPlaces[i / 3 % 3], bytes));
        out.push_back(std::make_unique<Bytebuffer>(rank, kPlaces[i % 3], bytes));
        out.back()->fill(static_cast<std::uint64_t>(1000 * rank.number + i));
        requests.push_back(rank.messenger.ireceive(rank.all, in.back()->whole(), peer, i));
        requests.push_back(
            rank.messenger.isend(rank.all, out.back()->whole(), peer, i, p2p::SendMode::standard));
    }
    Status failed;
    for (Result<p2p::Request*>& request : requests) {
        Received ended = co_await finish(rank.executor, rank, std::move(request));
        if (failed.ok()) failed = std::move(ended.status);
    }
    GANTRY_CO_TRY(failed);
    for (int i = 0; i < messages; ++i)
        WORLD_CHECK(in[static_cast<std::size_t>(i)]->holds(
            static_cast<std::uint64_t>(1000 * peer + i), sizes[i % 6]));
    co_return success();
}

constexpr int kMessages = 18;
constexpr Nanoseconds kNotice = 500 * kMicrosecond;

Nanoseconds undisturbed(const std::string& policy) {
    World world(with({.policy = policy}));
    const Ending ending = world.run([](Rank& rank) { return mix(rank, kMessages); });
    EXPECT_TRUE(ending.good()) << ending;
    return ending.time;
}

TEST(Rails, ThatFailAtAnyStepLoseNothing) {
    std::uint64_t repeats = 0;
    for (const char* policy : {"binding", "round_robin", "even", "weighted"}) {
        const Nanoseconds whole = undisturbed(policy);
        constexpr int kSteps = repetitions(40);
        for (int step = 0; step < kSteps; ++step) {
            const int rank = step % 2, rail = step / 2 % 2;
            World world(with({.policy = policy}, static_cast<std::uint64_t>(step + 1)));
            world.timeline().at(whole * step / kSteps,
                                [&] { world.network().fail_rail(rank, rail, kNotice); });
            const Ending ending = world.run([](Rank& each) { return mix(each, kMessages); });
            EXPECT_TRUE(ending.good()) << policy << ", step " << step << ": " << ending;
            EXPECT_TRUE(world.settle()) << policy << ", step " << step;
            for (int each = 0; each < 2; ++each)
                repeats += world.rank(each).transfer.rails.repeats();
        }
    }
    EXPECT_GT(repeats, 0u);
}

TEST(Rails, ThatComeBackAreUsedAgain) {
    World world(with({.count = 2}));
    world.timeline().at(0, [&] { world.network().fail_rail(0, 1, kNotice); });
    Nanoseconds without = 0, again = 0;
    const Ending first =
        world.run([](Rank& rank) { return stream(rank, 4, 16 * kMiB, Directions::one); });
    without = first.time;
    world.network().restore_rail(0, 1);
    const Ending second =
        world.run([](Rank& rank) { return stream(rank, 4, 16 * kMiB, Directions::one); });
    again = second.time;
    EXPECT_TRUE(first.good() && second.good()) << first << second;
    EXPECT_GT(static_cast<double>(without) / static_cast<double>(again), 1.8);
}

TEST(Rails, ThatAllFailAreAnErrorOnBothSides) {
    const Nanoseconds whole = undisturbed("weighted");
    constexpr int kSteps = repetitions(20);
    for (int step = 0; step < kSteps; ++step) {
        World world(with({}, static_cast<std::uint64_t>(step + 1)));
        world.timeline().at(whole * step * 4 / (5 * kSteps), [&] {
            world.network().fail_rail(0, 0, kNotice);
            world.network().fail_rail(step % 2, 1, kNotice + 7 * kMicrosecond);
        });
        const Ending ending = world.run([](Rank& each) { return mix(each, kMessages); });
        EXPECT_FALSE(ending.stuck) << "step " << step << ": " << ending;
        for (int rank = 0; rank < 2; ++rank)
            EXPECT_EQ(ending.of(rank).error_class(), MPI_ERR_PROC_ABORTED)
                << "step " << step << ": " << ending;
    }
}

}  // namespace
}  // namespace gantry::world
