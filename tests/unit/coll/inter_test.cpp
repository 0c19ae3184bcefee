// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives between two groups: groups of every pair of sizes up to seven ranks, each operation
// with every root of either group, and reductions whose order matters.
#include "coll/inter.hpp"
#include "affine.hpp"
#include "collective_world.hpp"

#include <algorithm>

namespace gantry::coll {
namespace {

using Number = std::int64_t;

// A rank's view of an inter-communicator: `border` processes are in the group that goes first. The
// processes are dealt out from the last to the first, so ranks differ from numbers of the world.
class TwoGroups {
  public:
    TwoGroups(Rank& rank, int border, int first_tag)
        : rank_(rank), group_(rank.all), border_(border), next_tag_(first_tag) {
        group_.context |= p2p::kCollectiveContext;
        std::reverse(group_.peers.begin(), group_.peers.end());
        group_.rank = group_.size() - 1 - rank.number;
    }
    Sides sides() {
        return Sides(Team{&rank_.messenger, &rank_.transfer, &group_, next_tag_++, 0, -1, border_});
    }
    int next_tag() const { return next_tag_; }
    bool in_first() const { return group_.rank < border_; }
    // World numbers of one of the groups.
    std::vector<int> members(bool of_first) const {
        const auto all = group_.peers.begin();
        return of_first ? std::vector<int>(all, all + border_)
                        : std::vector<int>(all + border_, group_.peers.end());
    }
    std::vector<int> mine() const { return members(in_first()); }
    std::vector<int> theirs() const { return members(!in_first()); }
    // The root argument on this rank when the root is process `root` of the world.
    int root_argument(int root) const {
        const std::vector<int> others = theirs();
        const auto place = std::find(others.begin(), others.end(), root);
        if (place != others.end()) return static_cast<int>(place - others.begin());
        return root == rank_.number ? MPI_ROOT : MPI_PROC_NULL;
    }

  private:
    Rank& rank_;
    p2p::Group group_;
    int border_;
    int next_tag_;
};

struct Case {
    Place place;
    std::size_t count;
};

Number value(int from, int to, std::size_t index) {
    return Number{from} * 1'000'000'000 + Number{to} * 1'000'000 + static_cast<Number>(index);
}

// Blocks of as many numbers as the sender's number says, so that some are empty.
std::size_t amount(int from, std::size_t count) {
    return count * static_cast<std::size_t>(from % 3);
}

Task<Status> allgathers(Executor& executor, Rank& rank, TwoGroups* groups, Case test) {
    Array<Number> mine(rank, test.place, amount(rank.number, test.count));
    for (std::size_t i = 0; i < mine.host().size(); ++i)
        mine[i] = value(rank.number, 0, i);
    Status stored = co_await mine.store(executor);
    GANTRY_CO_TRY(stored);
    Blocks blocks;
    std::int64_t end = 0;
    for (int from : groups->theirs()) {
        blocks.counts.push_back(static_cast<std::int64_t>(amount(from, test.count)));
        blocks.displacements.push_back(end);
        end += blocks.counts.back();
    }
    Array<Number> all(rank, test.place, static_cast<std::size_t>(end));
    blocks.address = all.address();
    blocks.layout = &all.layout();
    Status met = co_await inter_allgather(executor, groups->sides(), mine.buffer(), blocks);
    GANTRY_CO_TRY(met);
    Status loaded = co_await all.load(executor);
    GANTRY_CO_TRY(loaded);
    std::size_t at = 0;
    for (int from : groups->theirs())
        for (std::size_t i = 0; i < amount(from, test.count); ++i)
            WORLD_CHECK(all[at++] == value(from, 0, i));
    co_return success();
}

Task<Status> alltoalls(Executor& executor, Rank& rank, TwoGroups* groups, Case test) {
    const std::vector<int> theirs = groups->theirs();
    Array<Number> out(rank, test.place, test.count * theirs.size()),
        in(rank, test.place, test.count * theirs.size());
    for (std::size_t to = 0; to < theirs.size(); ++to)
        for (std::size_t i = 0; i < test.count; ++i)
            out[to * test.count + i] = value(rank.number, theirs[to], i);
    Status stored = co_await out.store(executor);
    GANTRY_CO_TRY(stored);
    Status met = co_await inter_alltoall(executor, groups->sides(), equal_blocks(out, test.count),
                                         equal_blocks(in, test.count));
    GANTRY_CO_TRY(met);
    Status loaded = co_await in.load(executor);
    GANTRY_CO_TRY(loaded);
    for (std::size_t from = 0; from < theirs.size(); ++from)
        for (std::size_t i = 0; i < test.count; ++i)
            WORLD_CHECK(in[from * test.count + i] == value(theirs[from], rank.number, i));
    co_return success();
}

Task<Status> rooted(Executor& executor, Rank& rank, TwoGroups* groups, Case test, int root) {
    const int argument = groups->root_argument(root);
    const bool is_root = argument == MPI_ROOT, takes_part = argument != MPI_PROC_NULL;
    const std::vector<int> theirs = groups->theirs();
    Array<Number> one(rank, test.place, test.count),
        all(rank, test.place, test.count * theirs.size());
    for (std::size_t i = 0; i < test.count; ++i)
        one[i] = is_root ? value(root, 0, i) : -1;
    Status stored = co_await one.store(executor);
    GANTRY_CO_TRY(stored);
    Status met = co_await inter_bcast(executor, groups->sides(), one.buffer(), argument);
    GANTRY_CO_TRY(met);
    Status loaded = co_await one.load(executor);
    GANTRY_CO_TRY(loaded);
    for (std::size_t i = 0; i < test.count; ++i)
        WORLD_CHECK(one[i] == (takes_part ? value(root, 0, i) : -1));

    for (std::size_t i = 0; i < test.count; ++i)
        one[i] = value(rank.number, root, i);
    stored = co_await one.store(executor);
    GANTRY_CO_TRY(stored);
    met = co_await inter_gather(executor, groups->sides(), one.buffer(),
                                equal_blocks(all, test.count), argument);
    GANTRY_CO_TRY(met);
    if (is_root) {
        loaded = co_await all.load(executor);
        GANTRY_CO_TRY(loaded);
        for (std::size_t from = 0; from < theirs.size(); ++from)
            for (std::size_t i = 0; i < test.count; ++i)
                WORLD_CHECK(all[from * test.count + i] == value(theirs[from], root, i));
    }
    Array<Number> back(rank, test.place, test.count);
    met = co_await inter_scatter(executor, groups->sides(), equal_blocks(all, test.count),
                                 back.buffer(), argument);
    GANTRY_CO_TRY(met);
    loaded = co_await back.load(executor);
    GANTRY_CO_TRY(loaded);
    for (std::size_t i = 0; i < test.count && takes_part && !is_root; ++i)
        WORLD_CHECK(back[i] == value(rank.number, root, i));

    Array<Affine> source(rank, test.place, test.count), sink(rank, test.place, test.count);
    for (std::size_t i = 0; i < test.count; ++i)
        source[i] = of_process(rank.number, i);
    stored = co_await source.store(executor);
    GANTRY_CO_TRY(stored);
    const Reducer how = composition();
    met = co_await inter_reduce(executor, groups->sides(), source.buffer(), sink.buffer(), how,
                                argument);
    GANTRY_CO_TRY(met);
    loaded = co_await sink.load(executor);
    GANTRY_CO_TRY(loaded);
    for (std::size_t i = 0; i < test.count && is_root; ++i)
        WORLD_CHECK(sink[i] == composed(theirs, i));
    co_return success();
}

Task<Status> reductions(Executor& executor, Rank& rank, TwoGroups* groups, Case test) {
    const std::vector<int> mine = groups->mine(), theirs = groups->theirs();
    // A vector that both groups can divide among their ranks.
    const std::size_t whole = test.count * mine.size() * theirs.size(), share = whole / mine.size();
    Array<Affine> source(rank, test.place, whole), sink(rank, test.place, whole),
        part(rank, test.place, share);
    for (std::size_t i = 0; i < whole; ++i)
        source[i] = of_process(rank.number, i);
    Status stored = co_await source.store(executor);
    GANTRY_CO_TRY(stored);
    const Reducer how = composition();
    Status met =
        co_await inter_allreduce(executor, groups->sides(), source.buffer(), sink.buffer(), how);
    GANTRY_CO_TRY(met);
    Status loaded = co_await sink.load(executor);
    GANTRY_CO_TRY(loaded);
    for (std::size_t i = 0; i < whole; ++i)
        WORLD_CHECK(sink[i] == composed(theirs, i));

    Blocks shares;
    shares.layout = &source.layout();
    for (std::size_t to = 0; to < mine.size(); ++to) {
        shares.counts.push_back(static_cast<std::int64_t>(share));
        shares.displacements.push_back(static_cast<std::int64_t>(share * to));
    }
    const Sides sides = groups->sides();
    met =
        co_await inter_reduce_scatter(executor, sides, source.buffer(), shares, part.buffer(), how);
    GANTRY_CO_TRY(met);
    loaded = co_await part.load(executor);
    GANTRY_CO_TRY(loaded);
    const std::size_t first = share * static_cast<std::size_t>(sides.mine.rank());
    for (std::size_t i = 0; i < share; ++i)
        WORLD_CHECK(part[i] == composed(theirs, first + i));
    co_return success();
}

enum class What { blocks, roots, sums };

Task<Status> everything(Executor& executor, Rank& rank, Case test, What what) {
    int tag = 0;
    for (int border = 1; border < rank.all.size(); ++border) {
        TwoGroups groups(rank, border, tag);
        Status met;
        if (what == What::blocks) {
            met = co_await allgathers(executor, rank, &groups, test);
            GANTRY_CO_TRY(met);
            met = co_await alltoalls(executor, rank, &groups, test);
            GANTRY_CO_TRY(met);
        } else if (what == What::sums) {
            met = co_await reductions(executor, rank, &groups, test);
            GANTRY_CO_TRY(met);
        } else {
            for (int root = 0; root < rank.all.size(); ++root) {
                met = co_await rooted(executor, rank, &groups, test, root);
                GANTRY_CO_TRY(met);
            }
        }
        tag = groups.next_tag();
        // The groups end here: nobody may still expect messages of theirs.
        met = co_await inter_barrier(executor, groups.sides());
        GANTRY_CO_TRY(met);
        tag = groups.next_tag();
    }
    co_return success();
}

class Inter : public ::testing::TestWithParam<Case> {};

TEST_P(Inter, BlocksOfEachGroupReachTheOther) {
    expect_good([test = GetParam()](Rank& rank) {
        return everything(rank.executor, rank, test, What::blocks);
    });
}
TEST_P(Inter, RootsOfEitherGroupMeetTheOtherAlone) {
    expect_good([test = GetParam()](Rank& rank) {
        return everything(rank.executor, rank, test, What::roots);
    });
}
TEST_P(Inter, ReductionsAreTheOtherGroupsInRankOrder) {
    expect_good([test = GetParam()](Rank& rank) {
        return everything(rank.executor, rank, test, What::sums);
    });
}
INSTANTIATE_TEST_SUITE_P(Sizes, Inter,
                         ::testing::Values(Case{Place::host, 0}, Case{Place::host, 1},
                                           Case{Place::host, 2050}, Case{Place::device, 515}));

struct Times {
    std::vector<Nanoseconds> entered, left;
    std::vector<bool> in_first;
};
Task<Status> meet_late(Executor& executor, Rank& rank, int border, Times* times) {
    TwoGroups groups(rank, border, 0);
    const auto me = static_cast<std::size_t>(rank.number);
    times->in_first[me] = groups.in_first();
    Status slept = co_await rank.sleep(executor, rank.number * 50 * kMicrosecond);
    GANTRY_CO_TRY(slept);
    times->entered[me] = executor.now();
    Status met = co_await inter_barrier(executor, groups.sides());
    times->left[me] = executor.now();
    co_return met;
}

TEST(InterBarrier, LetsNobodyLeaveBeforeTheOtherGroupHasEntered) {
    for (std::size_t border = 1; border < 6; ++border) {
        world::Options options;
        options.ranks = 6;
        world::World world(options);
        Times times{std::vector<Nanoseconds>(6), std::vector<Nanoseconds>(6), std::vector<bool>(6)};
        const world::Ending ending = world.run([&times, border](Rank& rank) {
            return meet_late(rank.executor, rank, static_cast<int>(border), &times);
        });
        ASSERT_TRUE(ending.good()) << ending;
        for (std::size_t one = 0; one < 6; ++one) {
            for (std::size_t other = 0; other < 6; ++other) {
                if (times.in_first[one] == times.in_first[other]) continue;
                EXPECT_GE(times.left[one], times.entered[other]) << one << " and " << other;
            }
        }
    }
}

}  // namespace
}  // namespace gantry::coll
