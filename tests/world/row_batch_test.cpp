// SPDX-License-Identifier: BSD-3-Clause
//
// Strided copies inside a GPU that come together (transfer/row_batch.hpp): the first goes at once, all
// others share a launch, with one end.
#include "transfer/row_batch.hpp"

#include "base/scope.hpp"
#include "world/harness/programs.hpp"

#include <cstring>

namespace gantry::world {
namespace {

constexpr Bytes kWidth = 8, kRows = 100;

struct Trial {
    int copies = 1;
    int failing = 0;  // that launch
    Bytes planes = 1;
    Bytes large = 0;             // rows of the first copy, which is large; 0: it is none
    std::uint64_t launches = 0;  // found
    int failed = 0;              // copies, found
};

Task<Status> move(Executor& executor, Rank& rank, device::Copy copy, Status* end) {
    Status ended = co_await rank.transfer.row_batch.move(executor, rank.transfer, copy);
    *end = std::move(ended);
    co_return success();
}

// Columns of one buffer into columns of another one.
Task<Status> together(Rank& rank, Trial* trial) {
    Bytebuffer from(rank, Place::device, 4 * kMiB), to(rank, Place::device, 4 * kMiB);
    from.fill(3);
    to.clear();
    WORLD_CHECK(rank.device.classify(from.address(), from.bytes()).ok());
    rank.device.reset_counts();
    rank.device.faults.fail_copy = trial->failing;
    std::vector<device::Rows> rows;
    for (int i = 0; i < trial->copies; ++i) {
        const Bytes count = i == 0 && trial->large > 0 ? trial->large : kRows / trial->planes;
        const auto at = static_cast<std::ptrdiff_t>(i) * static_cast<std::ptrdiff_t>(kWidth);
        const Bytes width = i == 0 && trial->large > 0 ? 16 * kWidth : kWidth;
        rows.push_back({at, at, width, count, 1024, 512, trial->planes, 100 * 1024, 50 * 512});
    }
    std::vector<Status> ends(rows.size());
    Scope all(rank.executor);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        device::Copy copy;
        copy.destination = to.address();
        copy.source = from.address();
        copy.bytes = rows[i].bytes();
        copy.engine = device::Engine::kernel;
        copy.rows = std::span(&rows[i], 1);
        all.spawn(move(rank.executor, rank, copy, &ends[i]));
    }
    Status joined = co_await all.join(rank.executor);
    GANTRY_CO_TRY(joined);
    trial->launches = rank.device.counts().row_launches;
    const std::byte* const source = rank.device.behind(from.address(), from.bytes());
    const std::byte* const sink = rank.device.behind(to.address(), to.bytes());
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (!ends[i].ok()) {
            ++trial->failed;
            continue;
        }
        const device::Rows& set = rows[i];
        for (Bytes row = 0; row < set.count * set.planes; ++row) {
            const Bytes plane = row / set.count, in_plane = row % set.count;
            WORLD_CHECK(std::memcmp(sink + set.destination + plane * set.destination_plane +
                                        in_plane * set.destination_pitch,
                                    source + set.source + plane * set.source_plane +
                                        in_plane * set.source_pitch,
                                    set.width) == 0);
        }
    }
    co_return success();
}

Trial run(Trial trial) {
    World world({.machine = "h200", .ranks = 1});
    const Ending ending = world.run([&trial](Rank& rank) { return together(rank, &trial); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_TRUE(world.settle());
    return trial;
}

TEST(RowBatch, CopiesThatComeMeanwhileAreOneLaunch) {
    for (const Bytes planes : {1, 5}) {
        EXPECT_EQ(run({.copies = 1, .planes = planes}).launches, 1u);
        for (const int copies : {2, 9, 26, 60})
            EXPECT_EQ(run({.copies = copies, .planes = planes}).launches, 2u) << copies;
    }
}

TEST(RowBatch, LargeCopiesWaitForNobodyAndNobodyForThem) {
    EXPECT_EQ(run({.copies = 1, .large = 4000}).launches, 1u);
    // 500 KiB, and two small ones: the first of these goes at once.
    EXPECT_EQ(run({.copies = 3, .large = 4000}).launches, 2u + 1u);
}

TEST(RowBatch, ALaunchThatFailsFailsForAllOfIt) {
    EXPECT_EQ(run({.copies = 10, .failing = 1}).failed, 1);
    EXPECT_EQ(run({.copies = 10, .failing = 2}).failed, 9);
    EXPECT_EQ(run({.copies = 10, .failing = 3}).failed, 0);
}

}  // namespace
}  // namespace gantry::world
