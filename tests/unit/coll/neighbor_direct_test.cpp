// SPDX-License-Identifier: BSD-3-Clause
//
// Neighbor exchanges in device memory of a node: two launches a rank whatever the number of neighbors, and
// the right bytes or an error on every rank.
#include "base/scope.hpp"
#include "neighbor_scene.hpp"
#include "sanitized.hpp"

namespace gantry::coll {
namespace {

using namespace neighbor_scene;

// Everybody sends to so many ranks after it, from `first` on, a block of that shape each.
Scene ring(int ranks, int neighbors, Shape out, Shape in, int first = 1, Bytes bytes = 1024) {
    std::mt19937_64 dice(static_cast<std::uint64_t>(ranks * 100 + neighbors));
    Scene scene{.ranks = ranks,
                .places = std::vector<Place>(static_cast<std::size_t>(ranks), Place::device)};
    Memories memories(ranks);
    for (int from = 0; from < ranks; ++from)
        for (int i = 0; i < neighbors; ++i) {
            Edge edge{from, (from + first + i) % ranks, bytes, {}, {}};
            // Both ends are made alike if they have one shape.
            std::mt19937_64 same = dice;
            edge.out.layout = layout_of(dice, out, bytes);
            edge.in.layout = layout_of(out == in ? same : dice, in, bytes);
            memories.place(edge.from, true, edge.out);
            memories.place(edge.to, false, edge.in);
            scene.edges.push_back(std::move(edge));
        }
    return scene;
}

std::vector<Launched> run(const Scene& scene, const world::Options& options) {
    std::vector<Launched> launched(static_cast<std::size_t>(scene.ranks));
    world::World world(options);
    const world::Ending ending = world.run(
        [&](Rank& rank) { return exchanges(rank.executor, rank, &scene, &launched, nullptr); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_TRUE(world.settle()) << "something is left, seed " << options.seed;
    return launched;
}

void expect_launches(const Scene& scene, const world::Options& options, std::uint64_t number) {
    for (const Launched& rank : run(scene, options)) {
        EXPECT_EQ(rank.rows, number)
            << scene.ranks << " ranks, " << scene.edges.size() << " edges, seed " << options.seed;
        EXPECT_EQ(rank.all, number) << "copies beside launches";
    }
}

TEST(NeighborsInANode, TakeTwoLaunchesWhateverTheirNumber) {
    for (const Shape shape : {Shape::column, Shape::box, Shape::listed})
        for (const int ranks : {2, 3, 8})
            for (const int neighbors : {1, 2, 7, 26}) {
                const Scene scene = ring(ranks, neighbors, shape, shape);
                expect_launches(scene, node_of(scene), 2);
            }
}

TEST(NeighborsInANode, TakeOneLaunchWhereBlocksAreReceivedInPlace) {
    for (const int neighbors : {1, 6}) {
        Scene scene = ring(4, neighbors, Shape::column, Shape::contiguous);
        expect_launches(scene, node_of(scene), 1);
    }
}

TEST(NeighborsInANode, ThatAreTheRankItselfAreServedInPlace) {
    // A ring of one step whose first neighbor is the rank itself.
    Scene scene = ring(2, 1, Shape::box, Shape::box, 0);
    expect_launches(scene, node_of(scene), 1);
    scene = ring(2, 1, Shape::box, Shape::column, 0);
    expect_launches(scene, node_of(scene), 2);
}

TEST(NeighborsInANode, OfARankThatIsAloneThereAreItself) {
    for (const int neighbors : {3, 26}) {
        Scene scene = ring(1, neighbors, Shape::box, Shape::box);
        expect_launches(scene, node_of(scene), 1);
    }
    // One rank a node: what is for itself, beside messages.
    const Scene scene = ring(3, 3, Shape::box, Shape::box, 0);
    world::Options options = node_of(scene);
    options.ranks_per_node = 1;
    run(scene, options);
}

TEST(NeighborsInANode, TakeTwoLaunchesOnAGpuThatTheyShare) {
    for (const Nanoseconds turn : {Nanoseconds{0}, 140 * kMicrosecond}) {
        Scene scene = ring(4, 13, Shape::column, Shape::column);
        scene.gpus = 1;
        world::Options options = node_of(scene);
        options.change_machine = [turn](model::Machine& machine) { machine.gpu.turn = turn; };
        expect_launches(scene, options, 2);
    }
}

TEST(NeighborsInANode, ArePlannedByTheirNumber) {
    Scene scene = ring(3, 20, Shape::column, Shape::column);
    scene.algorithm = plan::Algorithm::automatic;
    expect_launches(scene, node_of(scene), 2);
    scene.algorithm = plan::Algorithm::spread;
    for (const Launched& rank : run(scene, node_of(scene)))
        EXPECT_GT(rank.all, 2u) << "messages were asked for";
}

TEST(NeighborsInANode, GoByMessagesWithoutScratchMemoryOrMappings) {
    Scene scene = ring(3, 5, Shape::column, Shape::column);
    world::Options options = node_of(scene);
    options.change_config = [](config::Config& config) { config.device_scratch = 0; };
    run(scene, options);
    for (const int refusing : {0, 1, 2}) {
        world::World world(node_of(scene));
        world.rank(refusing).device.faults.refuse_ipc_open = true;
        const world::Ending ending = world.run(
            [&](Rank& rank) { return exchanges(rank.executor, rank, &scene, nullptr, nullptr); });
        EXPECT_TRUE(ending.good()) << ending;
        EXPECT_TRUE(world.settle());
    }
}

// Some of them find no cell on the node segment for their rooms, and go by messages.
Task<Status> at_once(Executor& executor, Rank& rank, const std::vector<Scene>* scenes) {
    Scope all(executor);
    for (const Scene& scene : *scenes)
        all.spawn(exchanges(executor, rank, &scene, nullptr, nullptr));
    Status joined = co_await all.join(executor);
    co_return joined;
}

TEST(NeighborsInANode, MayHaveManyExchangesInFlight) {
    std::vector<Scene> scenes;
    for (int i = 0; i < 24; ++i) {
        scenes.push_back(
            ring(3, 1 + i % 5, Shape::column, i % 2 == 0 ? Shape::box : Shape::listed));
        scenes.back().first_tag = 10 * i;
        scenes.back().delay = i % 3 * 20 * kMicrosecond;
    }
    world::World world(node_of(scenes.front(), 5));
    const world::Ending ending =
        world.run([&](Rank& rank) { return at_once(rank.executor, rank, &scenes); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_TRUE(world.settle());
}

// --- random ones ---------------------------------------------------------------------------------

Scene random_scene(std::uint64_t seed, int most_ranks) {
    std::mt19937_64 dice(seed);
    const auto below = [&dice](int limit) {
        return static_cast<int>(dice() % static_cast<std::uint64_t>(limit));
    };
    Scene scene{.ranks = 2 + below(most_ranks - 1)};
    const bool mixed = below(2) == 0;
    for (int rank = 0; rank < scene.ranks; ++rank)
        scene.places.push_back(mixed && below(3) == 0 ? Place::host : Place::device);
    scene.gpus = below(3) == 0 ? 1 : 8;
    scene.nobody = below(2) == 0;
    scene.delay = below(2) == 0 ? 0 : 200 * kMicrosecond;
    const plan::Algorithm algorithms[] = {plan::Algorithm::automatic, plan::Algorithm::direct};
    scene.algorithm = algorithms[below(2)];
    Memories memories(scene.ranks);
    const int edges = below(5 * scene.ranks + 1);
    for (int i = 0; i < edges; ++i) {
        Edge edge{below(scene.ranks), below(1 + scene.ranks / 2), 0, {}, {}};
        const bool odd = below(3) == 0;  // no multiple of anything
        if (below(6) != 0)
            edge.bytes = odd ? 1 + dice() % 3000 : 64 * (1 + dice() % (below(8) == 0 ? 1024 : 40));
        for (End* end : {&edge.out, &edge.in}) {
            const Shape shape = odd ? (below(2) == 0 ? Shape::contiguous : Shape::listed)
                                    : static_cast<Shape>(below(4));
            end->layout =
                edge.bytes > 0 ? layout_of(dice, shape, edge.bytes) : layout::contiguous_layout(0);
            end->memory = static_cast<std::size_t>(below(kMemories));
        }
        memories.place(edge.from, true, edge.out);
        memories.place(edge.to, false, edge.in);
        scene.edges.push_back(std::move(edge));
    }
    return scene;
}

world::Options random_world(const Scene& scene, std::uint64_t seed) {
    world::Options options = node_of(scene, seed);
    options.ranks_per_node = seed % 2 == 0 ? scene.ranks : 1 + static_cast<int>(seed % 7);
    options.jitter = 20 * kMicrosecond;
    options.network_order = transport::fake::Order::shuffled;
    if (seed % 4 == 0)
        options.change_machine = [](model::Machine& machine) { machine.gpu.turn = 0; };
    return options;
}

TEST(RandomNeighbors, GetTheRightBytes) {
    for (std::uint64_t seed = 1; seed <= repetitions(36); ++seed) {
        const Scene scene = random_scene(seed, seed % 10 == 0 ? 30 : 9);
        run(scene, random_world(scene, seed));
        if (HasFailure()) break;
    }
}

TEST(RandomNeighbors, GetTheRightBytesOrAnErrorWhenOneDies) {
    for (std::uint64_t seed = 101; seed <= 100 + repetitions(6); ++seed) {
        Scene scene = random_scene(seed, 8);
        scene.rounds = 1;
        bool wrong = false;
        const world::Program program = [&](Rank& rank) {
            return exchanges(rank.executor, rank, &scene, nullptr, &wrong);
        };
        world::World healthy(random_world(scene, seed));
        const world::Ending whole = healthy.run(program);
        ASSERT_TRUE(whole.good()) << whole;
        constexpr int kTimes = 10;
        for (int step = 0; step < kTimes; ++step) {
            world::World world(random_world(scene, seed));
            world.kill_at(whole.time * step / kTimes, step % scene.ranks);
            const world::Ending ending = world.run(program);
            ASSERT_FALSE(ending.stuck)
                << "rank " << step % scene.ranks << " dies at step " << step << ": " << ending;
            ASSERT_FALSE(wrong) << "seed " << seed << ", step " << step << ": " << ending;
        }
    }
}

// --- faults --------------------------------------------------------------------------------------

TEST(NeighborsInANode, WhoseCopyFailsAreTold) {
    Scene scene = ring(4, 3, Shape::column, Shape::column);
    scene.rounds = 1;
    for (const int failing : {1, 2}) {
        bool wrong = false;
        world::World world(node_of(scene));
        world.rank(1).device.faults.fail_copy = failing;  // launch 1, launch 2
        const world::Ending ending = world.run(
            [&](Rank& rank) { return exchanges(rank.executor, rank, &scene, nullptr, &wrong); });
        EXPECT_FALSE(ending.stuck) << ending;
        EXPECT_FALSE(wrong) << ending;
        EXPECT_FALSE(ending.of(1).ok());
    }
}

}  // namespace
}  // namespace gantry::coll
