// SPDX-License-Identifier: BSD-3-Clause
//
// Every pair of memory kinds, over every way between two ranks, at sizes around each protocol's
// limits, expected and unexpected, with all bytes checked and many seeds. After each run no engine
// may hold anything.
#include "sanitized.hpp"
#include "world/harness/programs.hpp"

#include <fmt/format.h>

#include <tuple>

namespace gantry::world {
namespace {

struct Way {
    const char* name;
    const char* machine;
    int ranks_per_node;
    int sink_gpu;
    Bytes exposes_from = 0;
};
constexpr Way kWays[] = {
    {"Network", "c2050-qdr", 1, 0}, {"NetworkThatExposes", "c2050-qdr", 1, 0, 64 * kKiB},
    {"FastNetwork", "h200", 1, 0},  {"SharedMemoryStaged", "c2050-qdr", 2, 0},
    {"SharedGpu", "h200", 2, 0},    {"TwoGpusOfANode", "h200", 2, 1},
};

struct Case {
    Place source, sink;
    int sink_gpu;
    std::vector<Bytes> sizes;
};

constexpr int kToken = 1, kData = 2;

Task<Status> source_side(Rank& rank, const Case& test) {
    for (const Bytes bytes : test.sizes) {
        for (std::uint64_t round = 0; round < 2; ++round) {
            Bytebuffer out(rank, test.source, bytes);
            out.fill(bytes + round);
            if (round == 0) {  // expected: the receive is posted first
                Received token = co_await receive(rank, kNothing, 1, kToken);
                GANTRY_CO_TRY(token.status);
            }
            Status sent = co_await send(rank, out.whole(), 1, kData);
            out.fill(~bytes);  // the program may overwrite it now
            if (!sent.ok())
                co_return sent.with(fmt::format("sending {} bytes, round {}", bytes, round));
        }
    }
    co_return success();
}

Task<Status> sink_side(Rank& rank, const Case& test) {
    for (const Bytes bytes : test.sizes) {
        for (std::uint64_t round = 0; round < 2; ++round) {
            Bytebuffer in(rank, test.sink, bytes + 16, test.sink_gpu);
            Received received;
            if (round == 0) {
                Result<p2p::Request*> posted =
                    rank.messenger.ireceive(rank.all, in.whole(), 0, kData);
                Status token = co_await send(rank, kNothing, 0, kToken);
                GANTRY_CO_TRY(token);
                received = co_await finish(rank.executor, rank, std::move(posted));
            } else {
                Status slept = co_await rank.sleep(rank.executor, 100 * kMicrosecond);
                GANTRY_CO_TRY(slept);
                received = co_await receive(rank, in.whole(), 0, kData);
            }
            if (!received.status.ok())
                co_return received.status.with(
                    fmt::format("receiving {} bytes, round {}", bytes, round));
            if (received.outcome.bytes != bytes || !in.holds(bytes + round, bytes))
                co_return failure(MPI_ERR_OTHER,
                                  "{} bytes, round {}: wrong data ({} bytes reported)", bytes,
                                  round, received.outcome.bytes);
        }
    }
    co_return success();
}

class Exchange : public testing::TestWithParam<std::tuple<Place, Place, Way>> {
  protected:
    void run(std::vector<Bytes> sizes, int seeds) {
        const auto [source, sink, way] = GetParam();
        const Case test{source, sink, way.sink_gpu, std::move(sizes)};
        for (int seed = 1; seed <= seeds; ++seed) {
            World world({.machine = way.machine,
                         .ranks = 2,
                         .ranks_per_node = way.ranks_per_node,
                         .seed = static_cast<std::uint64_t>(seed),
                         .jitter = seed % 4 * 7 * kMicrosecond,
                         .network_order = seed % 2 == 0 ? transport::fake::Order::shuffled
                                                        : transport::fake::Order::kept,
                         .duplicate_envelopes = seed % 3 == 0,
                         .exposes_from = way.exposes_from});
            const Ending ending = world.run([&test](Rank& rank) {
                return rank.number == 0 ? source_side(rank, test) : sink_side(rank, test);
            });
            ASSERT_TRUE(ending.good()) << ending;
            ASSERT_TRUE(world.settle()) << "something was left over, seed " << seed;
        }
    }
};

TEST_P(Exchange, SmallMessagesArriveWhole) {
    run({0, 1, 8, 1000}, repetitions(24));
}

TEST_P(Exchange, MessagesAroundTheLimitsArriveWhole) {
    const auto way = std::get<2>(GetParam());
    const model::Machine machine = model::load(way.machine).value();
    const Bytes largest =
        (way.ranks_per_node == 2 ? machine.shared_memory : machine.network).eager_max;
    run({largest - 1, largest, largest + 1, 32 * kKiB - 1, 32 * kKiB, 32 * kKiB + 1, 64 * kKiB},
        repetitions(12));
}

TEST_P(Exchange, LargeMessagesArriveWhole) {
    run({kMiB, 4 * kMiB + 3}, repetitions(4));
}

INSTANTIATE_TEST_SUITE_P(
    AllPlaces, Exchange,
    testing::Combine(testing::Values(Place::host, Place::pinned, Place::device),
                     testing::Values(Place::host, Place::pinned, Place::device),
                     testing::ValuesIn(kWays)),
    [](const auto& each) {
        return fmt::format("{}To{}Over{}", name(std::get<0>(each.param)),
                           name(std::get<1>(each.param)), std::get<2>(each.param).name);
    });

}  // namespace
}  // namespace gantry::world
