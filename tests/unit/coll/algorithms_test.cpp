// SPDX-License-Identifier: BSD-3-Clause
//
// Every algorithm of every collective: right bytes for any number of ranks, in rough weather; and the
// messages and bytes that its head promises.
#include "algorithms.hpp"
#include "sanitized.hpp"

#include <bit>

namespace gantry::coll {
namespace {

using plan::Algorithm;
using plan::Collective;

world::Options weather(int ranks) {
    world::Options options;
    options.machine = "h200";
    options.ranks = ranks;
    options.ranks_per_node = 1 + ranks % 4;
    options.seed = static_cast<std::uint64_t>(ranks);
    options.jitter = 20 * kMicrosecond;
    options.network_order = transport::fake::Order::shuffled;
    return options;
}

void expect_right(Setting setting, int ranks) {
    int wrong = 0;
    setting.wrong = &wrong;
    world::World world(weather(ranks));
    const world::Ending ending =
        world.run([setting](Rank& rank) { return once(rank.executor, rank, setting); });
    ASSERT_TRUE(ending.good()) << ranks << " ranks: " << text(setting) << ": " << ending;
    ASSERT_TRUE(world.settle()) << ranks << " ranks: " << text(setting)
                                << ": something is left, seed " << ending.seed;
}

class EveryAlgorithm : public ::testing::TestWithParam<Algorithms> {
  protected:
    // Each algorithm of the operation, with these things of the setting.
    void each(const Setting& of, const std::vector<int>& ranks) {
        for (const Algorithm algorithm : GetParam().list) {
            Setting setting = of;
            setting.operation = GetParam().operation;
            setting.algorithm = algorithm;
            for (const int number : ranks) {
                expect_right(setting, number);
                if (HasFatalFailure()) return;
            }
        }
    }
};

// Powers of two, numbers beside them and others.
const std::vector<int> kManyRanks =
    kSanitized ? std::vector{1, 2, 3, 4, 5, 7, 8, 9, 12, 16}
               : std::vector{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17};

TEST_P(EveryAlgorithm, GivesTheRightBytes) {
    for (const std::size_t count : {0, 1, 7, 300})
        each({.count = count, .root = 2}, kManyRanks);
}
TEST_P(EveryAlgorithm, AlsoForThirtyTwoAndSixtyFourRanks) {
    each({.count = 70, .root = 1}, {32, 64});
}
TEST_P(EveryAlgorithm, AlsoForLongVectors) {
    each({.count = 40'000, .root = 1}, {2, 3, 4, 7});
}
TEST_P(EveryAlgorithm, AlsoInPlace) {
    for (const std::size_t count : {1, 300})
        each({.count = count, .form = Form::in_place, .root = 1}, {1, 2, 3, 4, 6, 8, 11});
}
TEST_P(EveryAlgorithm, AlsoWhereDatatypesDifferBetweenRanks) {
    if (reduces(GetParam().operation)) return;  // there they may not
    for (const std::size_t count : {1, 300})
        each({.count = count, .form = Form::gaps, .root = 1}, {1, 2, 3, 4, 6, 8, 11});
}
TEST_P(EveryAlgorithm, AlsoInDeviceMemory) {
    for (const std::size_t count : {1, 3000})
        each({.count = count, .place = Place::device, .root = 1}, {2, 3, 4, 5});
    each({.count = 300, .place = Place::device, .form = Form::in_place}, {3, 4});
    if (!reduces(GetParam().operation))
        each({.count = 300, .place = Place::device, .form = Form::gaps, .root = 1}, {3, 4, 7});
}
TEST_P(EveryAlgorithm, KeepsTheOrderOfRanksWhereItMatters) {
    if (!reduces(GetParam().operation)) return;
    // Those that cannot are replaced by one that can.
    for (const std::size_t count : {1, 7, 300})
        each({.count = count, .ordered = true, .root = 2}, kManyRanks);
    each({.count = 300, .form = Form::in_place, .ordered = true, .root = 1}, {2, 3, 4, 7});
}
INSTANTIATE_TEST_SUITE_P(Operations, EveryAlgorithm, ::testing::ValuesIn(all_algorithms()),
                         [](const auto& of) { return std::string(name(of.param.operation)); });

// Each event of the world asks every rank: a sanitizer would take minutes for the whole number.
constexpr int kMostRanks = kSanitized ? 256 : 1024;

TEST(ManyRanks, UpToOneThousandAndTwentyFour) {
    for (const Setting& setting :
         {Setting{.operation = Collective::barrier},
          Setting{.operation = Collective::bcast, .algorithm = Algorithm::binomial, .count = 3},
          Setting{.operation = Collective::allreduce,
          .algorithm = Algorithm::recursive_doubling,
          .count = 2}}) {
        expect_right(setting, kMostRanks);
        if (HasFatalFailure()) return;
    }
}

// --- messages and bytes ---------------------------------------------------------------------------

struct Sent {
    std::vector<std::uint64_t> messages;
    std::vector<Bytes> bytes;
};

Sent sent_by(Setting setting, int ranks) {
    int wrong = 0;
    setting.wrong = &wrong;
    Sent sent;
    sent.messages.resize(static_cast<std::size_t>(ranks));
    sent.bytes.resize(static_cast<std::size_t>(ranks));
    setting.messages = &sent.messages;
    setting.bytes = &sent.bytes;
    world::World world(weather(ranks));
    const world::Ending ending =
        world.run([setting](Rank& rank) { return once(rank.executor, rank, setting); });
    EXPECT_TRUE(ending.good()) << ranks << " ranks: " << text(setting) << ": " << ending;
    return sent;
}

std::uint64_t rounds(int ranks) {
    return static_cast<std::uint64_t>(std::bit_width(static_cast<unsigned>(ranks - 1)));
}

// Of any rank and of all, for vectors (or blocks) of 64 elements of 8 bytes on a power of two of ranks
// (`ranks` divides the vector).
struct Promise {
    Collective operation;
    Algorithm algorithm;
    std::uint64_t (*most_messages)(std::uint64_t ranks, std::uint64_t rounds);
    Bytes (*most_bytes)(Bytes n, std::uint64_t ranks, std::uint64_t rounds);
};
using U = std::uint64_t;
const Promise kPromises[] = {
    {Collective::barrier, Algorithm::dissemination, [](U, U r) { return r; },
     [](Bytes, U, U) { return Bytes{0}; }},
    {Collective::bcast, Algorithm::binomial, [](U, U r) { return r; },
     [](Bytes n, U, U r) { return n * r; }},
    {Collective::bcast, Algorithm::scatter_allgather, [](U, U r) { return 2 * r; },
     [](Bytes n, U p, U) { return 2 * (n - n / p); }},
    {Collective::bcast, Algorithm::chain, [](U, U) { return U{1}; },
     [](Bytes n, U, U) { return n; }},
    {Collective::reduce, Algorithm::binomial, [](U, U) { return U{1}; },
     [](Bytes n, U, U) { return n; }},
    {Collective::reduce, Algorithm::rabenseifner, [](U, U r) { return r + 1; },
     [](Bytes n, U, U) { return n; }},
    {Collective::reduce, Algorithm::pairwise, [](U p, U) { return p; },
     [](Bytes n, U, U) { return n; }},
    {Collective::allreduce, Algorithm::recursive_doubling, [](U, U r) { return r; },
     [](Bytes n, U, U r) { return n * r; }},
    {Collective::allreduce, Algorithm::rabenseifner, [](U, U r) { return 2 * r; },
     [](Bytes n, U p, U) { return 2 * (n - n / p); }},
    {Collective::allreduce, Algorithm::ring, [](U p, U r) { return p - 1 + r; },
     [](Bytes n, U p, U) { return 2 * (n - n / p); }},
    {Collective::allreduce, Algorithm::pairwise, [](U p, U r) { return p - 1 + r; },
     [](Bytes n, U p, U) { return 2 * (n - n / p); }},
    {Collective::allreduce, Algorithm::fold, [](U p, U) { return p - 1; },
     [](Bytes n, U p, U) { return n * (p - 1); }},
    {Collective::allreduce, Algorithm::ordered, [](U p, U r) { return p - 1 + r; },
     [](Bytes n, U p, U) { return 2 * (n - n / p); }},
    {Collective::allgather, Algorithm::recursive_doubling, [](U, U r) { return r; },
     [](Bytes n, U p, U) { return n * (p - 1); }},
    {Collective::allgather, Algorithm::bruck, [](U, U r) { return r; },
     [](Bytes n, U p, U) { return n * (p - 1); }},
    {Collective::allgather, Algorithm::ring, [](U p, U) { return p - 1; },
     [](Bytes n, U p, U) { return n * (p - 1); }},
    {Collective::allgather, Algorithm::spread, [](U p, U) { return p - 1; },
     [](Bytes n, U p, U) { return n * (p - 1); }},
    {Collective::alltoall, Algorithm::bruck, [](U, U r) { return r; },
     [](Bytes n, U p, U r) { return n * p / 2 * r; }},
    {Collective::alltoall, Algorithm::pairwise, [](U p, U) { return p - 1; },
     [](Bytes n, U p, U) { return n * (p - 1); }},
    {Collective::alltoall, Algorithm::spread, [](U p, U) { return p - 1; },
     [](Bytes n, U p, U) { return n * (p - 1); }},
    {Collective::gather, Algorithm::binomial, [](U, U) { return U{1}; },
     [](Bytes n, U p, U) { return n * p / 2; }},
    {Collective::gather, Algorithm::linear, [](U, U) { return U{1}; },
     [](Bytes n, U, U) { return n; }},
    {Collective::scatter, Algorithm::binomial, [](U, U r) { return r; },
     [](Bytes n, U p, U) { return n * (p - 1); }},
    {Collective::scatter, Algorithm::linear, [](U p, U) { return p - 1; },
     [](Bytes n, U p, U) { return n * (p - 1); }},
    {Collective::scan, Algorithm::recursive_doubling, [](U, U r) { return r; },
     [](Bytes n, U, U r) { return n * r; }},
    {Collective::scan, Algorithm::chain, [](U, U) { return U{1}; },
     [](Bytes n, U, U) { return n; }},
};

TEST(MessagesOfAlgorithms, AreThoseOfTheirHeads) {
    constexpr std::size_t kCount = 64;
    constexpr Bytes kVector = kCount * 8;
    for (const Promise& promise : kPromises) {
        for (const int ranks : {2, 4, 8, 16, 32}) {
            const Setting setting{
                .operation = promise.operation, .algorithm = promise.algorithm, .count = kCount};
            const Sent sent = sent_by(setting, ranks);
            const auto number = static_cast<U>(ranks);
            // Who sends most sends just so much.
            EXPECT_EQ(*std::ranges::max_element(sent.messages),
                      promise.most_messages(number, rounds(ranks)))
                << ranks << " ranks: " << text(setting);
            EXPECT_EQ(*std::ranges::max_element(sent.bytes),
                      promise.most_bytes(kVector, number, rounds(ranks)))
                << ranks << " ranks: " << text(setting);
        }
    }
}

}  // namespace
}  // namespace gantry::coll
