// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives of ranks on several nodes, with device memory: all-to-alls that stage blocks
// dynamically, and operations that go inside nodes first. Right bytes for any ranks, nodes, sizes, kinds
// of memory and orders; and what they cost: copies, messages, bytes between nodes.
#include "coll/allreduce.hpp"
#include "coll/barrier.hpp"
#include "coll/bcast.hpp"
#include "coll/gather.hpp"
#include "coll/reduce.hpp"
#include "collective_world.hpp"
#include "number_sum.hpp"
#include "sanitized.hpp"

#include <algorithm>
#include <numeric>
#include <random>

namespace gantry::coll {
namespace {

using model::Operation;
using plan::Algorithm;
using plan::Collective;
using world::Bytebuffer;
using world::Ending;
using world::World;

constexpr int kGpusOfNode = 8;
constexpr int kMostRanks = kSanitized ? 16 : 32;

// All ranks, in some order, on one algorithm.
class Communicator {
  public:
    Communicator(Rank& rank, Collective operation, Algorithm algorithm, std::uint64_t order)
        : rank_(rank), common_(rank.transfer.config, &rank.explain), planner_(&common_) {
        group_ = rank.all;
        group_.context |= p2p::kCollectiveContext;
        if (order != 0) {
            std::mt19937_64 random(order);
            std::shuffle(group_.peers.begin(), group_.peers.end(), random);
            group_.rank = static_cast<int>(std::ranges::find(group_.peers, rank.number) -
                                           group_.peers.begin());
        }
        common_.nodes = rank.job.nodes();
        common_.job.facts = plan::coll_facts_of(rank.world.machine());
        common_.job.tuning.fixed[static_cast<std::size_t>(operation)] = algorithm;
    }
    Team team() {
        return {&rank_.messenger, &rank_.transfer, &group_, tag_++, 0, -1, 0, &planner_};
    }
    int me() const { return group_.rank; }
    int size() const { return group_.size(); }
    Common& common() { return common_; }

  private:
    Rank& rank_;
    p2p::Group group_;
    Common common_;
    Planner planner_;
    int tag_ = 0;
};

struct Trial {
    int ranks = 2;
    int ranks_per_node = 1;
    Bytes bytes = 0;  // of every block; 0: random ones
    std::uint64_t seed = 1;
    bool mixed = false;     // kinds of memory, else on the device
    bool shuffled = false;  // ranks lie anywhere
    int rounds = 2;
    Collective operation = Collective::alltoallv;
    Algorithm algorithm = Algorithm::staged;
};

std::uint64_t hash(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    std::uint64_t mixed = (a * 0x9E3779B97F4A7C15u) ^ (b + 0x7F4A7C15u) * 0xBF58476D1CE4E5B9u ^ c;
    mixed ^= mixed >> 29;
    mixed *= 0x94D049BB133111EBu;
    return mixed ^ (mixed >> 31);
}

Bytes block_bytes(const Trial& trial, int from, int to) {
    if (trial.bytes != 0) return trial.bytes;
    const std::uint64_t mixed =
        hash(trial.seed, static_cast<std::uint64_t>(from) * 64 + static_cast<std::uint64_t>(to), 1);
    switch (mixed % 8) {
        case 0: return 0;
        case 1: return mixed / 8 % 100'000;
        case 2: return trial.ranks <= 6 ? 300'000 + mixed / 8 % 100'000 : 5000;
        default: return mixed / 8 % 3000;
    }
}

Place place_of(const Trial& trial, int rank, int direction) {
    if (!trial.mixed) return Place::device;
    constexpr Place kPlaces[] = {Place::device, Place::host, Place::device, Place::pinned};
    return kPlaces[hash(trial.seed, static_cast<std::uint64_t>(rank),
                        static_cast<std::uint64_t>(direction)) %
                   4];
}

std::byte content(std::uint64_t key, Bytes at) {
    return static_cast<std::byte>(((at + key * 131) * 0x9e3779b97f4a7c15u) >> 56);
}
std::uint64_t key_of(int round, int from, int to) {
    return static_cast<std::uint64_t>((round * 64 + from) * 64 + to);
}

// A rank's blocks in one buffer, with some gaps.
struct Side {
    Blocks blocks;
    Bytes all = 0;
    template <class Size>
    Side(int ranks, Size size, bool gaps) {
        for (int each = 0; each < ranks; ++each) {
            blocks.counts.push_back(static_cast<std::int64_t>(size(each)));
            blocks.displacements.push_back(static_cast<std::int64_t>(all));
            all += size(each) + (gaps && each % 3 == 1 ? 5 : 0);
        }
        all = std::max<Bytes>(all, 1);
    }
};

Task<Status> alltoalls(Rank& rank, const Trial& trial) {
    Communicator all(rank, trial.operation, trial.algorithm, trial.shuffled ? trial.seed : 0);
    const int me = all.me(), ranks = all.size(), gpu = rank.number % kGpusOfNode;
    const bool gaps = trial.bytes == 0;
    Side out(
        ranks, [&](int to) { return block_bytes(trial, me, to); }, gaps),
        in(
            ranks, [&](int from) { return block_bytes(trial, from, me); }, gaps);
    Bytebuffer outgoing(rank, place_of(trial, rank.number, 0), out.all, gpu),
        incoming(rank, place_of(trial, rank.number, 1), in.all, gpu);
    for (auto [side, buffer] : {std::pair(&out, &outgoing), std::pair(&in, &incoming)}) {
        side->blocks.address = buffer->address();
        side->blocks.layout = buffer->whole().layout;
        if (trial.operation != Collective::alltoall) continue;
        side->blocks.counts.clear();
        side->blocks.count = trial.bytes;
    }
    rank.device.reset_counts();
    for (int round = 0; round < trial.rounds; ++round) {
        incoming.clear();
        for (int to = 0; to < ranks; ++to) {
            const p2p::Buffer block = out.blocks.of(to);
            std::byte* const bytes =
                block.count > 0 ? rank.device.behind(block.data(), block.count) : nullptr;
            for (Bytes at = 0; at < block.count; ++at)
                bytes[at] = content(key_of(round, me, to), at);
        }
        Status done = co_await alltoall(rank.executor, all.team(), out.blocks, in.blocks);
        GANTRY_CO_TRY(done);
        for (int from = 0; from < ranks; ++from) {
            const p2p::Buffer block = in.blocks.of(from);
            const std::byte* const bytes =
                block.count > 0 ? rank.device.behind(block.data(), block.count) : nullptr;
            for (Bytes at = 0; at < block.count; ++at)
                WORLD_CHECK(bytes[at] == content(key_of(round, from, me), at));
        }
    }
    co_return success();
}

world::Options weather(const Trial& trial) {
    world::Options options;
    options.machine = "h200";
    options.ranks = trial.ranks;
    options.ranks_per_node = trial.ranks_per_node;
    options.seed = trial.seed;
    options.jitter = 20 * kMicrosecond;
    options.network_order = transport::fake::Order::shuffled;
    return options;
}

void expect_right(const Trial& trial) {
    World world(weather(trial));
    const Ending ending = world.run([&](Rank& rank) { return alltoalls(rank, trial); });
    ASSERT_TRUE(ending.good()) << trial.ranks << " ranks, " << trial.ranks_per_node
                               << " on a node, seed " << trial.seed << ": " << ending;
    ASSERT_TRUE(world.settle()) << trial.ranks << " ranks, seed " << trial.seed
                                << ": something is left";
}

TEST(StagedAlltoall, GivesTheRightBytesForRandomBlocks) {
    for (const auto& [ranks, on_a_node] : std::vector<std::pair<int, int>>{
             {2, 1}, {3, 1}, {3, 2}, {5, 2}, {6, 1}, {7, 3}, {8, 4}, {11, 4}, {16, 2}, {32, 4}})
        for (const bool mixed : {false, true})
            for (const bool shuffled : {false, true}) {
                if (ranks > kMostRanks) continue;
                const auto seed = static_cast<std::uint64_t>(ranks * 4 + mixed * 2 + shuffled + 1);
                expect_right({.ranks = ranks,
                              .ranks_per_node = on_a_node,
                              .seed = seed,
                              .mixed = mixed,
                              .shuffled = shuffled,
                              .rounds = ranks > 16 ? 1 : 2});
                if (HasFatalFailure()) return;
            }
}

// Of all ranks, in the rounds after the first.
TEST(StagedAlltoall, CopiesSmallBlocksTogether) {
    constexpr int kRanks = 8;
    const Trial trial{
        .ranks = kRanks, .bytes = 2 * kKiB, .rounds = 4, .operation = Collective::alltoall};
    World world({.machine = "h200", .ranks = kRanks, .seed = 1});
    const Ending ending = world.run([&](Rank& rank) { return alltoalls(rank, trial); });
    ASSERT_TRUE(ending.good()) << ending;
    for (int rank = 0; rank < kRanks; ++rank) {
        const device::fake::Counts& counts = world.rank(rank).device.counts();
        // Blocks for the ranks above it, and for those below: at most two runs of memory each way.
        EXPECT_LE(counts.copies[static_cast<int>(Operation::d2h)], 2u * 4) << rank;
        EXPECT_LE(counts.copies[static_cast<int>(Operation::h2d)], 2u * 4) << rank;
    }
    // Eager messages, one a block.
    EXPECT_EQ(world.network().messages(), 4u * kRanks * (kRanks - 1));
}

TEST(StagedAlltoall, StoresWithinNodesInOneLaunch) {
    constexpr int kRanks = 8, kOnANode = 4;
    const Trial trial{.ranks = kRanks,
                      .ranks_per_node = kOnANode,
                      .bytes = 8 * kKiB,
                      .rounds = 3,
                      .operation = Collective::alltoall};
    World world({.machine = "h200", .ranks = kRanks, .ranks_per_node = kOnANode, .seed = 1});
    const Ending ending = world.run([&](Rank& rank) { return alltoalls(rank, trial); });
    ASSERT_TRUE(ending.good()) << ending;
    for (int rank = 0; rank < kRanks; ++rank)
        EXPECT_EQ(world.rank(rank).device.counts().launches, 3u) << rank;
    EXPECT_EQ(messages_of(world), 0u);
}

TEST(StagedAlltoall, TakesNoMorePinnedMemoryThanThereIs) {
    for (const Bytes pool : {256 * kKiB, 512 * kKiB, kMiB}) {
        const Trial trial{.ranks = 5, .bytes = 100 * kKiB, .operation = Collective::alltoall};
        world::Options options = weather(trial);
        options.change_config = [pool](config::Config& config) { config.device_pool = pool; };
        World world(options);
        const Ending ending = world.run([&](Rank& rank) { return alltoalls(rank, trial); });
        EXPECT_TRUE(ending.good()) << pool << ": " << ending;
        EXPECT_TRUE(world.settle()) << pool;
    }
}

// --- blocks that are passed on from node to node --------------------------------------------------

Bytes out_of_gpus(World& world, int rank) {
    const device::fake::Counts& counts = world.rank(rank).device.counts();
    return counts.bytes[static_cast<int>(Operation::d2h)] +
           counts.bytes[static_cast<int>(Operation::pageable_d2h)];
}

constexpr Bytes kPassedOn = 200 * kKiB;

Task<Status> passes_on(Rank& rank, Collective operation, Algorithm algorithm,
                       Bytes bytes = kPassedOn) {
    Communicator all(rank, operation, algorithm, 0);
    all.common().job.tuning.segment = 32 * kKiB;
    const auto ranks = static_cast<Bytes>(all.size());
    Bytebuffer blocks(rank, Place::device, bytes * ranks);
    const auto fill = [&](Bytes block, bool own) {
        std::byte* const memory = rank.device.behind(blocks.address() + block * bytes, bytes);
        const auto right = static_cast<std::byte>(block + 1);
        if (own) std::fill_n(memory, bytes, right);
        return std::all_of(memory, memory + bytes, [&](std::byte each) { return each == right; });
    };
    const bool gathers = operation == Collective::allgather;
    const Bytes first = gathers ? static_cast<Bytes>(all.me()) : 0;
    if (gathers || all.me() == 0) fill(first, true);
    Blocks everybody;
    everybody.address = blocks.address();
    everybody.layout = blocks.whole().layout;
    everybody.count = bytes;
    Status done;
    if (gathers)
        done =
            co_await allgather(rank.executor, all.team(), everybody.of(all.me()), everybody, true);
    else
        done = co_await bcast(rank.executor, all.team(), everybody.of(0), 0);
    GANTRY_CO_TRY(done);
    for (Bytes block = 0; block < (gathers ? ranks : 1); ++block)
        WORLD_CHECK(fill(block, false));
    co_return success();
}

TEST(Relay, CopiesNothingOutOfTheGpuThatIsPassedOn) {
    for (const int ranks : {2, 3, 5})
        for (std::uint64_t seed = 1; seed <= 3; ++seed) {
            const Trial trial{.ranks = ranks, .seed = seed};
            World ring(weather(trial));
            Ending ending = ring.run(
                [](Rank& rank) { return passes_on(rank, Collective::allgather, Algorithm::ring); });
            ASSERT_TRUE(ending.good()) << ranks << " ranks, seed " << seed << ": " << ending;
            ASSERT_TRUE(ring.settle());
            World chain(weather(trial));
            ending = chain.run(
                [](Rank& rank) { return passes_on(rank, Collective::bcast, Algorithm::chain); });
            ASSERT_TRUE(ending.good()) << ranks << " ranks, seed " << seed << ": " << ending;
            ASSERT_TRUE(chain.settle());
            for (int rank = 0; rank < ranks; ++rank) {
                EXPECT_EQ(out_of_gpus(ring, rank), kPassedOn) << rank;
                EXPECT_EQ(out_of_gpus(chain, rank), rank == 0 ? kPassedOn : 0) << rank;
            }
        }
}

// The stages of a short vector, and the pieces of one that is too long for that.
TEST(StagedVector, IsReadOnceByTheRootAndOutOfNoOtherGpu) {
    for (const Algorithm way : {Algorithm::chain, Algorithm::scatter_allgather})
        for (const int ranks : {2, 3, 5, 8})
            for (const Bytes bytes : {Bytes{70001}, kPassedOn, kMiB, kMiB + 5}) {
                if (way == Algorithm::scatter_allgather && bytes > kMiB) continue;
                const Trial trial{.ranks = ranks, .seed = 3};
                World world(weather(trial));
                const Ending ending = world.run([way, bytes](Rank& rank) {
                    return passes_on(rank, Collective::bcast, way, bytes);
                });
                ASSERT_TRUE(ending.good()) << ranks << " ranks, " << bytes << ": " << ending;
                ASSERT_TRUE(world.settle());
                for (int rank = 0; rank < ranks; ++rank) {
                    EXPECT_EQ(out_of_gpus(world, rank), rank == 0 ? bytes : 0)
                        << rank << " of " << ranks << ", " << bytes;
                    if (bytes > kMiB || rank + 1 == ranks) continue;  // stages and not pieces
                    EXPECT_LE(world.rank(rank).device.counts().all_copies(), bytes / 65536 + 3);
                }
            }
}

// --- a rank that dies -----------------------------------------------------------------------------

TEST(StagedAlltoall, EndsWhenARankDies) {
    const Trial trial{.ranks = 5, .ranks_per_node = 2, .bytes = 20 * kKiB, .rounds = 1};
    World healthy(weather(trial));
    const Ending whole = healthy.run([&](Rank& rank) { return alltoalls(rank, trial); });
    ASSERT_TRUE(whole.good()) << whole;
    constexpr int kTimes = repetitions(40);
    for (int step = 0; step < kTimes; ++step) {
        World world(weather(trial));
        world.kill_at(whole.time * step / kTimes, step % trial.ranks);
        const Ending ending = world.run([&](Rank& rank) { return alltoalls(rank, trial); });
        ASSERT_FALSE(ending.stuck)
            << "rank " << step % trial.ranks << " dies at step " << step << ": " << ending;
    }
}

// --- inside nodes first ---------------------------------------------------------------------------

// Numbers in device memory, a GPU for each rank of a node.
class Numbers {
  public:
    Numbers(Rank& rank, std::size_t count, Place place)
        : rank_(rank),
          count_(count),
          layout_(layout::contiguous_layout(sizeof(Number))),
          memory_(rank, place, std::max<Bytes>(count * sizeof(Number), 1),
                  rank.number % kGpusOfNode) {}
    p2p::Buffer buffer() { return {memory_.address(), count_, &layout_}; }
    Number& operator[](std::size_t index) {
        return reinterpret_cast<Number*>(
            rank_.device.behind(memory_.address(), memory_.bytes()))[index];
    }

  private:
    Rank& rank_;
    std::size_t count_;
    layout::Layout layout_;
    Bytebuffer memory_;
};

struct Vectors {
    int ranks = 2, ranks_per_node = 1;
    std::size_t count = 1;
    Place place = Place::device;
    bool in_place = false, shuffled = false;
    Collective operation = Collective::allreduce;
    Algorithm algorithm = Algorithm::hierarchical;
    std::uint64_t seed = 1;
    bool once = false;  // for one root only
};

Number summand(int rank, std::size_t index) {
    return (rank + 1) * 1000 + static_cast<Number>(index);
}
Number total(int ranks, std::size_t index) {
    return 500 * static_cast<Number>(ranks) * (ranks + 1) +
           static_cast<Number>(ranks) * static_cast<Number>(index);
}

Task<Status> vectors(Rank& rank, const Vectors& trial) {
    Communicator all(rank, trial.operation, trial.algorithm, trial.shuffled ? trial.seed : 0);
    Numbers source(rank, trial.count, trial.place), apart(rank, trial.count, trial.place);
    const int step = trial.operation == Collective::allreduce || trial.once ? trial.ranks : 3;
    for (int root = 0; root < trial.ranks; root += step) {
        for (std::size_t i = 0; i < trial.count; ++i) {
            source[i] = summand(all.me(), i);
            apart[i] = -1;
        }
        Numbers& sink = trial.in_place ? source : apart;
        Status met;
        const bool gets = trial.operation != Collective::reduce || all.me() == root;
        if (trial.operation == Collective::allreduce)
            met = co_await allreduce(rank.executor, all.team(), source.buffer(), sink.buffer(),
                                     sum());
        else if (trial.operation == Collective::reduce)
            met = co_await reduce(rank.executor, all.team(), source.buffer(), sink.buffer(), sum(),
                                  root);
        else
            met = co_await bcast(rank.executor, all.team(), source.buffer(), root);
        GANTRY_CO_TRY(met);
        for (std::size_t i = 0; i < trial.count && gets; ++i) {
            if (trial.operation == Collective::bcast)
                WORLD_CHECK(source[i] == summand(root, i));
            else
                WORLD_CHECK(sink[i] == total(all.size(), i));
        }
    }
    co_return success();
}

TEST(Hierarchical, GivesTheRightBytesInDeviceMemory) {
    for (const Collective operation :
         {Collective::allreduce, Collective::reduce, Collective::bcast})
        for (const auto& [ranks, on_a_node] :
             std::vector<std::pair<int, int>>{{3, 2}, {4, 2}, {7, 3}, {8, 4}, {11, 4}, {32, 8}})
            for (const std::size_t count : {std::size_t{1}, std::size_t{5000}})
                for (const bool in_place : {false, true}) {
                    if (ranks > kMostRanks) continue;
                    const Vectors trial{.ranks = ranks,
                                        .ranks_per_node = on_a_node,
                                        .count = count,
                                        .in_place = in_place,
                                        .shuffled = count == 1 && in_place,
                                        .operation = operation,
                                        .seed = static_cast<std::uint64_t>(ranks)};
                    World world(
                        weather({.ranks = ranks, .ranks_per_node = on_a_node, .seed = trial.seed}));
                    const Ending ending =
                        world.run([&](Rank& rank) { return vectors(rank, trial); });
                    ASSERT_TRUE(ending.good())
                        << name(operation) << " of " << count << ", " << ranks << " ranks, "
                        << on_a_node << " on a node, in place " << in_place << ": " << ending;
                    ASSERT_TRUE(world.settle()) << ranks << " ranks: something is left";
                }
}

Task<Status> one_barrier(Rank& rank) {
    Communicator all(rank, Collective::barrier, Algorithm::hierarchical, 0);
    Status met = co_await barrier(rank.executor, all.team());
    co_return met;
}

// Messages between four nodes of four ranks.
std::uint64_t between_nodes(const world::Program& program) {
    World world({.machine = "h200", .ranks = 16, .ranks_per_node = 4, .seed = 1});
    const Ending ending = world.run(program);
    EXPECT_TRUE(ending.good()) << ending;
    return world.network().messages();
}

TEST(Hierarchical, SendsBetweenNodesWhatOneRankOfEachDoes) {
    EXPECT_EQ(between_nodes([](Rank& rank) { return one_barrier(rank); }), 4u * 2);
    Vectors trial{.ranks = 16, .ranks_per_node = 4, .count = 1, .place = Place::host};
    EXPECT_EQ(between_nodes([&](Rank& rank) { return vectors(rank, trial); }), 4u * 2);
}

TEST(Hierarchical, ReducesALongVectorInSharesOnTheGpusOfANode) {
    constexpr std::size_t kCount = 128 * 1024;
    const Vectors trial{.ranks = 8, .ranks_per_node = 4, .count = kCount};
    World world({.machine = "h200", .ranks = 8, .ranks_per_node = 4, .seed = 1});
    const Ending ending = world.run([&](Rank& rank) { return vectors(rank, trial); });
    ASSERT_TRUE(ending.good()) << ending;
    // The vector goes there and back once, however many ranks a node has.
    EXPECT_LE(world.network().bytes_on_the_wire(), kCount * sizeof(Number) * 2 * 11 / 10);
}

TEST(Hierarchical, EndsWhenARankDies) {
    for (const Collective operation :
         {Collective::allreduce, Collective::reduce, Collective::bcast}) {
        const Vectors trial{
            .ranks = 6, .ranks_per_node = 2, .count = 3000, .operation = operation, .once = true};
        const Trial where{.ranks = 6, .ranks_per_node = 2, .seed = 3};
        World healthy(weather(where));
        const Ending whole = healthy.run([&](Rank& rank) { return vectors(rank, trial); });
        ASSERT_TRUE(whole.good()) << whole;
        constexpr int kTimes = repetitions(25);
        for (int step = 0; step < kTimes; ++step) {
            World world(weather(where));
            world.kill_at(whole.time * step / kTimes, step % 6);
            const Ending ending = world.run([&](Rank& rank) { return vectors(rank, trial); });
            ASSERT_FALSE(ending.stuck) << name(operation) << ", rank " << step % 6
                                       << " dies at step " << step << ": " << ending;
        }
    }
}

}  // namespace
}  // namespace gantry::coll
