// SPDX-License-Identifier: BSD-3-Clause
//
// The node segment: ranks find each other's descriptors, descriptors are used again when everybody has left
// them, and whoever waits for a rank that dies or fails gets an error.
#include "transfer/node_segment.hpp"

#include "world/harness/programs.hpp"

#include <algorithm>
#include <numeric>
#include <random>

namespace gantry::world {
namespace {

using transfer::Handshake;

struct Brought {
    int rank = 0, value = 0;
};

Options one_node(int ranks, std::uint64_t seed) {
    return {.machine = "h200", .ranks = ranks, .ranks_per_node = ranks, .seed = seed};
}

void expect_good(int ranks, const Program& program) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        World world(one_node(ranks, seed));
        const Ending ending = world.run(program);
        ASSERT_TRUE(ending.good()) << ranks << " ranks: " << ending;
        ASSERT_TRUE(world.settle()) << ranks << " ranks, seed " << seed;
    }
}

// One operation: everybody sees what everybody brought.
Task<Status> share(Executor& executor, Rank& rank, Handshake::Key key, int value) {
    Handshake handshake(rank.transfer.node_segment, rank.all.peers, rank.number, key);
    Status opened = co_await handshake.open(executor);
    GANTRY_CO_TRY(opened);
    handshake.post(Brought{rank.number, value});
    Status posted = co_await handshake.all_posted(executor);
    GANTRY_CO_TRY(posted);
    for (int each = 0; each < handshake.size(); ++each)
        WORLD_CHECK(handshake.offer<Brought>(each).rank == each &&
                    handshake.offer<Brought>(each).value == value);
    handshake.raise(0);
    Status raised = co_await handshake.all_raised(executor, 0);
    co_return raised;
}

Task<Status> one_key_again_and_again(Rank& rank) {
    WORLD_CHECK(rank.transfer.node_segment.covers(rank.all.peers));
    for (int round = 0; round < 600; ++round) {
        Handshake::Key key{1, 7, 0};
        Status shared = co_await share(rank.executor, rank, key, round);
        GANTRY_CO_TRY(shared);
    }
    co_return success();
}

TEST(NodeSegment, TellsTheRoundsOfOneOperationApart) {
    for (const int ranks : {1, 2, 3, 5, 8})
        expect_good(ranks, one_key_again_and_again);
}

// Each rank starts its operations in another order.
Task<Status> many_in_flight(Rank& rank) {
    Scope scope(rank.executor);
    for (int i = 0; i < 100; ++i) {
        const int tag = (i * 37 + rank.number * 13) % 100;
        scope.spawn(share(rank.executor, rank, {1, tag, 0}, tag));
    }
    Status all = co_await scope.join(rank.executor);
    co_return all;
}

TEST(NodeSegment, HoldsManyOperationsInFlightInAnyOrder) {
    for (const int ranks : {2, 3, 4})
        expect_good(ranks, many_in_flight);
}

constexpr int kRounds = 1000;

// Rank 0 posts and leaves at once; the others read late.
Task<Status> ahead_of_the_readers(Rank& rank) {
    for (int round = 0; round < kRounds; ++round) {
        Handshake handshake(rank.transfer.node_segment, rank.all.peers, rank.number, {1, round, 0});
        Status opened = co_await handshake.open(rank.executor);
        GANTRY_CO_TRY(opened);
        if (rank.number == 0 && !handshake.cell().empty())
            std::fill_n(handshake.cell().data(), 100, static_cast<std::byte>(round));
        handshake.post(Brought{rank.number, round});
        if (rank.number == 0) continue;
        if (round % 300 == 0) {
            Status slept = co_await rank.sleep(rank.executor, kMillisecond);
            GANTRY_CO_TRY(slept);
        }
        Status posted = co_await handshake.posted(rank.executor, 0);
        GANTRY_CO_TRY(posted);
        WORLD_CHECK(handshake.offer<Brought>(0).value == round);
        const std::span<std::byte> cell = handshake.cell_of(0);
        WORLD_CHECK(cell.empty() || std::all_of(cell.begin(), cell.begin() + 100, [&](auto byte) {
                        return byte == static_cast<std::byte>(round);
                    }));
    }
    co_return success();
}

TEST(NodeSegment, UsesARowAgainWhenEverybodyHasLeftIt) {
    for (const int ranks : {2, 3})
        expect_good(ranks, ahead_of_the_readers);
}

// Each rank in turn is the only one who is read, and is through before the others come. They leave descriptors
// that nobody has found yet: those of one operation are never taken for another's.
Task<Status> one_key_read_in_turns(Rank& rank) {
    const int size = static_cast<int>(rank.all.peers.size());
    std::mt19937 dice(static_cast<unsigned>(rank.number));
    for (int round = 0; round < 200; ++round) {
        const int root = round / 3 % size;
        Handshake handshake(rank.transfer.node_segment, rank.all.peers, rank.number, {1, 7, 0});
        Status opened = co_await handshake.open(rank.executor);
        GANTRY_CO_TRY(opened);
        handshake.post(Brought{rank.number, round});
        if (rank.number == root) continue;
        if (dice() % 4 == 0) {
            Status slept = co_await rank.sleep(rank.executor, 10 * kMicrosecond);
            GANTRY_CO_TRY(slept);
        }
        Status posted = co_await handshake.posted(rank.executor, root);
        GANTRY_CO_TRY(posted);
        WORLD_CHECK(handshake.offer<Brought>(root).value == round);
    }
    Status read = co_await rank.transfer.node_segment.all_read(rank.executor);
    co_return read;
}

TEST(NodeSegment, GivesDescriptorsOfOneKeyToOperationsInTheirOrder) {
    for (const int ranks : {2, 3, 4})
        expect_good(ranks, one_key_read_in_turns);
}

// Rank 0 is through with an operation before the others look for its descriptor, and wants to leave MPI.
Task<Status> leaves_first(Rank& rank) {
    if (rank.number != 0) {
        Status slept = co_await rank.sleep(rank.executor, kMillisecond);
        GANTRY_CO_TRY(slept);
    }
    {
        Handshake handshake(rank.transfer.node_segment, rank.all.peers, rank.number, {1, 7, 0});
        Status opened = co_await handshake.open(rank.executor);
        GANTRY_CO_TRY(opened);
        handshake.post(Brought{rank.number, 5});
        if (rank.number != 0) {
            Status posted = co_await handshake.posted(rank.executor, 0);
            GANTRY_CO_TRY(posted);
            WORLD_CHECK(handshake.offer<Brought>(0).value == 5);
        }
    }
    const Nanoseconds since = rank.processor.now();
    Status read = co_await rank.transfer.node_segment.all_read(rank.executor);
    if (rank.number == 0 && rank.all.peers.size() > 1)
        WORLD_CHECK(rank.processor.now() - since >= kMillisecond / 2);
    co_return read;
}

TEST(NodeSegment, KeepsARankUntilTheOthersHaveReadItsDescriptor) {
    for (const int ranks : {1, 2, 5})
        expect_good(ranks, leaves_first);
}

// Rank 0's descriptors are all that the others read, in two operations out of three.
Task<Status> one_key_read_now_and_then(Rank& rank) {
    for (int round = 0; round < 300; ++round) {
        Handshake handshake(rank.transfer.node_segment, rank.all.peers, rank.number, {1, 7, 0});
        Status opened = co_await handshake.open(rank.executor);
        GANTRY_CO_TRY(opened);
        handshake.post(Brought{rank.number, round});
        if (round % 50 == rank.number) {
            Status slept = co_await rank.sleep(rank.executor, 100 * kMicrosecond);
            GANTRY_CO_TRY(slept);
        }
        if (round % 3 != 0) {
            Status posted = co_await handshake.posted(rank.executor, 0);
            GANTRY_CO_TRY(posted);
            WORLD_CHECK(handshake.offer<Brought>(0).value == round);
            continue;
        }
        Status posted = co_await handshake.all_posted(rank.executor);
        GANTRY_CO_TRY(posted);
        for (int each = 0; each < handshake.size(); ++each)
            WORLD_CHECK(handshake.offer<Brought>(each).value == round);
    }
    co_return success();
}

TEST(NodeSegment, NeverTakesARowOfAnEarlierRoundForThisOne) {
    for (const int ranks : {2, 3, 4})
        expect_good(ranks, one_key_read_now_and_then);
}

enum class Dies { before_it_posts, before_it_raises };

Task<Status> with_a_rank_that_dies(Rank& rank, Dies when, Nanoseconds& waited) {
    const bool dying = rank.number == 1;
    if (dying && when == Dies::before_it_posts) rank.world.kill(rank.number);
    Handshake handshake(rank.transfer.node_segment, rank.all.peers, rank.number, {});
    Status opened = co_await handshake.open(rank.executor);
    GANTRY_CO_TRY(opened);
    if (!dying || when != Dies::before_it_posts) handshake.post(Brought{rank.number, 0});
    Status posted = co_await handshake.all_posted(rank.executor);
    if (when == Dies::before_it_posts) {
        WORLD_CHECK(posted.error_class() == MPI_ERR_PROC_ABORTED);
        co_return success();
    }
    GANTRY_CO_TRY(posted);
    if (dying) {
        rank.world.kill(rank.number);
        Status never = co_await rank.sleep(rank.executor, kSecond);
        co_return never;
    }
    // The last one takes its time: whoever ends with an error waits for it all the same.
    if (rank.number == handshake.size() - 1) {
        Status slept = co_await rank.sleep(rank.executor, kMillisecond);
        GANTRY_CO_TRY(slept);
    }
    handshake.raise(0);
    Status raised = co_await handshake.all_raised(rank.executor, 0);
    WORLD_CHECK(raised.error_class() == MPI_ERR_PROC_ABORTED);
    if (rank.number == 0) waited = rank.processor.now();
    co_return success();
}

// A descriptor that is open, and not posted yet, is not passed: what the others brought to it is still to be read.
Task<Status> open_before_another_is_posted(Rank& rank) {
    transfer::NodeSegment& node_segment = rank.transfer.node_segment;
    Handshake first(node_segment, rank.all.peers, rank.number, {1, 1, 0}),
        second(node_segment, rank.all.peers, rank.number, {1, 2, 0});
    Status opened = co_await first.open(rank.executor);
    GANTRY_CO_TRY(opened);
    opened = co_await second.open(rank.executor);
    GANTRY_CO_TRY(opened);
    second.post(Brought{rank.number, 2});
    const auto* const page =
        reinterpret_cast<const transfer::NodeSegmentPage*>(node_segment.own_page().data());
    for (const transfer::NodeSegmentPage::Descriptor& descriptor : page->descriptors)
        if (descriptor.serial == second.number())
            WORLD_CHECK(descriptor.passed_below < second.number());
    first.post(Brought{rank.number, 1});
    for (Handshake* const handshake : {&first, &second}) {
        Status met = co_await handshake->all_posted(rank.executor);
        GANTRY_CO_TRY(met);
    }
    co_return success();
}

TEST(NodeSegment, SaysOfNoDescriptorThatItWasPassedBeforeItWasPosted) {
    expect_good(3, open_before_another_is_posted);
}

TEST(NodeSegment, EndsWithAnErrorWhenARankDies) {
    for (const Dies when : {Dies::before_it_posts, Dies::before_it_raises})
        for (const int ranks : {2, 3, 4}) {
            Nanoseconds waited = 0;
            World world(one_node(ranks, 1));
            const Ending ending =
                world.run([&](Rank& rank) { return with_a_rank_that_dies(rank, when, waited); });
            EXPECT_TRUE(ending.good()) << ranks << " ranks: " << ending;
            if (when == Dies::before_it_raises && ranks > 2) {
                EXPECT_GE(waited, kMillisecond) << "it left while another rank was still at work";
            }
        }
}

Task<Status> with_a_rank_that_fails(Rank& rank) {
    Handshake handshake(rank.transfer.node_segment, rank.all.peers, rank.number, {});
    Status opened = co_await handshake.open(rank.executor);
    GANTRY_CO_TRY(opened);
    handshake.post(Brought{rank.number, 0});
    if (rank.number == 1)
        handshake.fail(failure(MPI_ERR_TRUNCATE, "too long"));
    else
        handshake.raise(1);
    Status raised = co_await handshake.all_raised(rank.executor, 1);
    WORLD_CHECK(raised.error_class() == MPI_ERR_TRUNCATE);
    co_return success();
}

TEST(NodeSegment, TellsTheOthersOfAFailure) {
    expect_good(3, with_a_rank_that_fails);
}

TEST(NodeSegment, CoversTheRanksOfOneNodeOnly) {
    World world({.machine = "h200", .ranks = 4, .ranks_per_node = 2, .seed = 1});
    for (int rank = 0; rank < 4; ++rank) {
        transfer::NodeSegment& node_segment = world.rank(rank).transfer.node_segment;
        const std::vector<int> neighbours{rank / 2 * 2, rank / 2 * 2 + 1};
        EXPECT_TRUE(node_segment.covers(neighbours));
        EXPECT_FALSE(node_segment.covers(world.rank(rank).all.peers));
    }
}

}  // namespace
}  // namespace gantry::world
