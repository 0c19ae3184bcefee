// SPDX-License-Identifier: BSD-3-Clause
//
// GANTRY_REPRODUCIBLE: sums of floating-point numbers have the bits of one process that adds the
// vectors up in the order of ranks, for any number of nodes, size, algorithm and order of arrival.
#include "coll/allreduce.hpp"
#include "coll/reduce.hpp"
#include "coll/reduce_scatter.hpp"
#include "coll/scan.hpp"
#include "coll/shares.hpp"
#include "collective_world.hpp"

#include <cstring>

namespace gantry::coll {
namespace {

// Numbers of very different sizes, so that the order of adding them shows.
float summand(int rank, std::size_t index) {
    const auto mixed = static_cast<std::uint32_t>(rank * 2654435761u + index * 40503u);
    return static_cast<float>(mixed % 1000) * (mixed % 7 == 0 ? 1e6f : 1e-3f);
}
float added_up(int last, std::size_t index) {
    float sum = summand(0, index);
    for (int rank = 1; rank <= last; ++rank)
        sum = sum + summand(rank, index);
    return sum;
}
bool same_bits(float a, float b) {
    return std::memcmp(&a, &b, sizeof a) == 0;
}

struct Case {
    std::size_t count;
    plan::Algorithm fixed;
};

Task<Status> sums(Executor& executor, Rank& rank, Case test) {
    Everybody all(rank);
    all.common().job.tuning.reproducible = true;
    all.common().job.tuning.fixed.fill(test.fixed);
    const int ranks = all.size();
    Reducer how;
    how.predefined = layout::reduction(layout::Operation::sum, layout::Element::float32);
    how.extent = sizeof(float);
    Array<float> source(rank, Place::host, test.count), sink(rank, Place::host, test.count);
    for (std::size_t i = 0; i < test.count; ++i)
        source[i] = summand(rank.number, i);
    Status met = co_await allreduce(executor, all.team(), source.buffer(), sink.buffer(), how);
    GANTRY_CO_TRY(met);
    for (std::size_t i = 0; i < test.count; ++i)
        WORLD_CHECK(same_bits(sink[i], added_up(ranks - 1, i)));
    met = co_await reduce(executor, all.team(), source.buffer(), sink.buffer(), how, ranks - 1);
    GANTRY_CO_TRY(met);
    for (std::size_t i = 0; i < test.count && rank.number == ranks - 1; ++i)
        WORLD_CHECK(same_bits(sink[i], added_up(ranks - 1, i)));
    met = co_await scan(executor, all.team(), source.buffer(), sink.buffer(), how, false);
    GANTRY_CO_TRY(met);
    for (std::size_t i = 0; i < test.count; ++i)
        WORLD_CHECK(same_bits(sink[i], added_up(rank.number, i)));
    Blocks shares;
    shares.layout = &source.layout();
    const Shares parts(test.count, ranks);
    for (int to = 0; to < ranks; ++to) {
        shares.counts.push_back(static_cast<std::int64_t>(parts.count_of(to)));
        shares.displacements.push_back(static_cast<std::int64_t>(parts.start(to)));
    }
    met = co_await reduce_scatter(executor, all.team(), source.buffer(), shares,
                                  parts.of(sink.buffer(), rank.number), how);
    GANTRY_CO_TRY(met);
    for (std::size_t i = parts.start(rank.number); i < parts.start(rank.number + 1); ++i)
        WORLD_CHECK(same_bits(sink[i], added_up(ranks - 1, i)));
    co_return success();
}

TEST(Reproducible, SumsHaveTheBitsOfOneProcess) {
    for (const std::size_t count : {1, 900, 30'000})
        for (const plan::Algorithm fixed : {plan::Algorithm::automatic, plan::Algorithm::fold,
                                            plan::Algorithm::ordered, plan::Algorithm::ring}) {
            const Case test{count, fixed};
            expect_good([test](Rank& rank) { return sums(rank.executor, rank, test); }, 6);
            if (HasFatalFailure()) return;
        }
}

}  // namespace
}  // namespace gantry::coll
