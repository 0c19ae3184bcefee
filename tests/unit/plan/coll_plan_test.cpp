// SPDX-License-Identifier: BSD-3-Clause
//
// The choice of collective algorithms as a pure function.
#include "plan/coll_plan.hpp"

#include "base/config.hpp"
#include "plan/coll_facts.hpp"
#include "plan/coll_model.hpp"
#include "plan/coll_table.hpp"
#include "plan/explain.hpp"
#include "coll_questions.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <span>

namespace gantry::plan {
namespace {

using testing::HasSubstr;

Collective operation_number(int number) {
    return static_cast<Collective>(number);
}

TEST(CollPlan, SameQuestionHasTheSameAnswer) {
    std::mt19937_64 random(7);
    for (int i = 0; i < 2000; ++i) {
        CollQuestion asked = question(operation_number(static_cast<int>(random() % kCollectives)),
                                      random() % (Bytes{1} << (random() % 28)),
                                      1 + static_cast<int>(random() % 100));
        asked.commutative = random() % 2 == 0;
        const CollChoice one = choose_collective(asked, {}, {}),
                         other = choose_collective(asked, {}, {});
        ASSERT_EQ(one.plan, other.plan) << name(asked.operation) << ", " << asked.bytes;
        ASSERT_GT(one.plan.expected, 0);
    }
}

TEST(CollPlan, EveryOperationHasAnAnswerForEveryShape) {
    for (int operation = 0; operation < kCollectives; ++operation)
        for (const int ranks : {1, 2, 3, 7, 8, 100})
            for (const int nodes : {1, 2, ranks})
                for (const Bytes bytes : {Bytes{0}, Bytes{1}, Bytes{4096}, Bytes{1} << 27}) {
                    if (nodes > ranks) continue;
                    CollQuestion asked = question(operation_number(operation), bytes, ranks, nodes);
                    for (const bool commutative : {true, false}) {
                        asked.commutative = commutative;
                        EXPECT_NE(choose_collective(asked, {}, {}).plan.algorithm,
                                  Algorithm::automatic);
                    }
                }
}

TEST(CollPlan, MoreBytesNeverTakeLessTime) {
    for (int operation = 0; operation < kCollectives; ++operation)
        for (const int ranks : {2, 3, 4, 8, 13, 64})
            for (const int nodes : {1, ranks}) {
                Nanoseconds before = 0;
                for (Bytes bytes = 8; bytes <= Bytes{1} << 27; bytes *= 2) {
                    const CollChoice choice = choose_collective(
                        question(operation_number(operation), bytes, ranks, nodes), {}, {});
                    EXPECT_GE(choice.plan.expected, before)
                        << name(operation_number(operation)) << " of " << bytes << " bytes, "
                        << ranks << " ranks";
                    before = choice.plan.expected;
                }
            }
}

TEST(CollPlan, TheWinnerIsTheFastestThatIsPossible) {
    for (int operation = 0; operation < kCollectives; ++operation)
        for (Bytes bytes = 8; bytes <= Bytes{1} << 26; bytes *= 8) {
            const CollChoice choice =
                choose_collective(question(operation_number(operation), bytes, 6), {}, {});
            for (int i = 0; i < choice.rejected_count; ++i) {
                const CollRejected& lost = choice.rejected[static_cast<std::size_t>(i)];
                if (lost.expected != 0) {
                    EXPECT_GE(lost.expected, choice.plan.expected);
                }
            }
        }
}

TEST(CollPlan, ShortVectorsTakeFewSteps) {
    const auto taken = [](Collective operation, Bytes bytes, int ranks) {
        return choose_collective(question(operation, bytes, ranks, ranks), {}, {}).plan.algorithm;
    };
    EXPECT_EQ(taken(Collective::allreduce, 8, 64), Algorithm::recursive_doubling);
    EXPECT_EQ(taken(Collective::bcast, 8, 64), Algorithm::binomial);
    EXPECT_EQ(taken(Collective::alltoall, 8, 256), Algorithm::bruck);
    EXPECT_EQ(taken(Collective::allgather, 8, 63), Algorithm::bruck);
    EXPECT_EQ(taken(Collective::gather, 8, 256), Algorithm::binomial);
}

TEST(CollPlan, LongVectorsAreCombinedInShares) {
    for (const int ranks : {4, 7, 16}) {
        const Algorithm taken =
            choose_collective(question(Collective::allreduce, 64 * kMiB, ranks, ranks), {}, {})
                .plan.algorithm;
        EXPECT_TRUE(taken == Algorithm::ring || taken == Algorithm::rabenseifner ||
                    taken == Algorithm::pairwise)
            << name(taken);
        const Algorithm scattered =
            choose_collective(question(Collective::reduce_scatter, 64 * kMiB, ranks, ranks), {}, {})
                .plan.algorithm;
        EXPECT_NE(scattered, Algorithm::binomial) << "never reduce all and then scatter";
    }
}

TEST(CollPlan, AnOperationThatDoesNotCommuteKeepsItsOrder) {
    for (const Collective operation :
         {Collective::reduce, Collective::allreduce, Collective::reduce_scatter})
        for (Bytes bytes = 8; bytes <= Bytes{1} << 27; bytes *= 4) {
            CollQuestion asked = question(operation, bytes, 12);
            asked.commutative = false;
            for (const Algorithm fixed : {Algorithm::automatic, Algorithm::ring,
                                          Algorithm::rabenseifner, Algorithm::recursive_halving}) {
                CollTuning tuning;
                tuning.fixed.fill(fixed);
                const Algorithm taken = choose_collective(asked, {}, tuning).plan.algorithm;
                EXPECT_NE(taken, Algorithm::ring);
                EXPECT_NE(taken, Algorithm::rabenseifner);
                EXPECT_NE(taken, Algorithm::recursive_halving);
            }
        }
}

TEST(CollPlan, ReproducibleReductionsHaveOneOrder) {
    CollTuning tuning{.reproducible = true};
    for (const Collective operation :
         {Collective::reduce, Collective::allreduce, Collective::reduce_scatter, Collective::scan})
        for (Bytes bytes = 0; bytes <= Bytes{1} << 27; bytes = bytes * 4 + 8)
            for (const Algorithm fixed : {Algorithm::automatic, Algorithm::recursive_doubling}) {
                tuning.fixed.fill(fixed);
                const CollQuestion asked = question(operation, bytes, 12);
                const Algorithm taken = choose_collective(asked, {}, tuning).plan.algorithm;
                EXPECT_TRUE(taken == Algorithm::fold || taken == Algorithm::ordered ||
                            taken == Algorithm::chain)
                    << name(operation) << " by " << name(taken);
            }
}

// Of a parameter's sentence: "auto, ring or spread".
std::vector<std::string> words_of(std::string text) {
    std::vector<std::string> words;
    std::string word;
    for (const char c : text + " ") {
        if (c != ' ' && c != ',') {
            word += c;
            continue;
        }
        if (!word.empty() && word != "or") words.push_back(word);
        word.clear();
    }
    return words;
}

TEST(CollPlan, EveryAlgorithmHasItsWordAndEveryWordItsAlgorithm) {
    for (int operation = 0; operation < kCollectives; ++operation) {
        const Collective asked = operation_number(operation);
        if (asked == Collective::gatherv || asked == Collective::scatterv) continue;  // one each
        const std::string parameter = fmt::format("coll_{}", name(asked));
        config::Config config;
        // The refusal of a word that is none of them lists them.
        const Status refused = config::set(config, parameter, "quickest");
        ASSERT_FALSE(refused.ok()) << parameter;
        const std::string sentence(refused.text());
        const std::string list = sentence.substr(sentence.find("takes ") + 6);
        std::vector<std::string> expected = {"auto"};
        // On two nodes of GPUs, and on one whose ranks share a node segment, all of them can be.
        CollQuestion any = question(asked, 256, 8);
        CollQuestion in_node_segment = any;
        in_node_segment.node_segment.there = in_node_segment.node_segment.mailbox = true;
        any.shape.nodes = 2;
        any.shape.most = any.shape.fewest = 4;
        const CollFacts facts;
        for (const CollCandidate& candidate : candidates_of(CollAsk(in_node_segment, facts, {})))
            expected.emplace_back(name(candidate.algorithm));
        EXPECT_THAT(words_of(list), testing::UnorderedElementsAreArray(expected)) << parameter;
        for (const std::string& word : expected) {
            ASSERT_TRUE(config::set(config, parameter, word).ok()) << parameter << "=" << word;
            const CollTuning tuning = coll_tuning_from(config);
            if (word == "auto") continue;
            const Algorithm fixed = tuning.fixed[static_cast<std::size_t>(asked)];
            in_node_segment.memory = fixed == Algorithm::cells   ? CollMemory::cells
                                     : fixed == Algorithm::reads ? CollMemory::host
                                                                 : CollMemory::device;
            const CollChoice choice = choose_collective(
                goes_over_node_segment(fixed) ? in_node_segment : any, facts, tuning);
            EXPECT_EQ(name(choice.plan.algorithm), word);
            EXPECT_STREQ(choice.plan.why, "fixed by a parameter");
        }
    }
}

Algorithm taken(const CollQuestion& asked) {
    return choose_collective(asked, facts_of("h100"), {}).plan.algorithm;
}

TEST(CollPlan, RanksMeetWhereSomeMemoryGoesOverTheNodeSegment) {
    const auto meet = [](CollQuestion asked, const CollTuning& tuning) {
        return choose_collective(asked, facts_of("h100"), tuning).plan.meet;
    };
    CollQuestion asked = on_node(Collective::alltoall, 8, 4, CollMemory::unknown);
    EXPECT_TRUE(meet(asked, {}));
    CollTuning by_messages;
    by_messages.fixed.fill(Algorithm::pairwise);
    EXPECT_FALSE(meet(asked, by_messages));
    for (const CollMemory memory : {CollMemory::cells, CollMemory::device, CollMemory::other}) {
        asked.memory = memory;
        EXPECT_FALSE(meet(asked, {})) << "they have met";
    }
    asked.memory = CollMemory::unknown;
    asked.node_segment.there = false;
    EXPECT_FALSE(meet(asked, {}));
    // By messages, but by others than host memory would go.
    EXPECT_TRUE(meet(on_node(Collective::bcast, 64 * kMiB, 4, CollMemory::unknown), {}));
    EXPECT_EQ(taken(on_node(Collective::bcast, 64 * kMiB, 4, CollMemory::device)),
              Algorithm::direct_shares);
    EXPECT_EQ(taken(on_node(Collective::allgather, 64 * kMiB, 4, CollMemory::device)),
              Algorithm::direct);
    // Neither cells nor stores: nothing to meet for.
    EXPECT_FALSE(meet(on_node(Collective::bcast, kMiB, 2, CollMemory::unknown), {}));
}

TEST(CollPlan, WhatIsNeitherOnTheNodeSegmentNorMappedGoesByMessages) {
    for (int operation = 0; operation < kCollectives; ++operation)
        for (const Bytes bytes : {Bytes{8}, kMiB})
            EXPECT_FALSE(goes_over_node_segment(
                taken(on_node(operation_number(operation), bytes, 4, CollMemory::other))));
}

TEST(CollPlan, TwoRanksBroadcastDeviceMemoryByAMessage) {
    for (Bytes bytes = 8; bytes <= 64 * kMiB; bytes *= 2)
        EXPECT_FALSE(
            goes_over_node_segment(taken(on_node(Collective::bcast, bytes, 2, CollMemory::device))))
            << bytes;
    for (Bytes bytes = 8; bytes <= kMiB; bytes *= 2)
        EXPECT_EQ(taken(on_node(Collective::bcast, bytes, 4, CollMemory::device)),
                  Algorithm::direct)
            << bytes;
}

TEST(CollPlan, LongBroadcastsPassOnSharesInPiecesUnlessRanksShareAGpu) {
    CollQuestion asked = on_node(Collective::bcast, 64 * kMiB, 4, CollMemory::device);
    const CollPlan plan = choose_collective(asked, facts_of("h100"), {}).plan;
    EXPECT_EQ(plan.algorithm, Algorithm::direct_shares);
    EXPECT_GT(plan.segment, 0u);
    EXPECT_LT(plan.segment, asked.bytes / 4);
    // What one link needs for the vector, and little more.
    const double once =
        static_cast<double>(asked.bytes) * 1e9 / facts_of("h100").gpu.peer_bytes_per_second;
    EXPECT_LT(static_cast<double>(plan.expected), 1.4 * once);
    asked.node_segment.time_sliced = true;
    EXPECT_NE(taken(asked), Algorithm::direct_shares);
    asked = on_node(Collective::bcast, 64 * kMiB, 2, CollMemory::device);
    EXPECT_NE(taken(asked), Algorithm::direct_shares);
}

TEST(CollPlan, TheSecondShotPaysWhereItSavesMoreThanItsStoresTake) {
    const auto allreduce = [](Bytes bytes, int ranks) {
        return on_node(Collective::allreduce, bytes, ranks, CollMemory::device);
    };
    EXPECT_EQ(taken(allreduce(kMiB, 2)), Algorithm::one_shot);
    EXPECT_EQ(taken(allreduce(64 * kKiB, 4)), Algorithm::one_shot);
    EXPECT_EQ(taken(allreduce(kMiB, 4)), Algorithm::two_shots);
    CollQuestion asked = allreduce(8, 4);
    asked.node_segment.in_place = true;
    EXPECT_EQ(taken(asked), Algorithm::two_shots) << "others read what would be overwritten";
    asked.operation = Collective::scan;
    EXPECT_FALSE(goes_over_node_segment(taken(asked)));
    asked = allreduce(8, 17);
    EXPECT_FALSE(goes_over_node_segment(taken(asked))) << "more vectors than a kernel takes";
    asked = allreduce(8, 4);
    asked.predefined = false;
    EXPECT_FALSE(goes_over_node_segment(taken(asked))) << "no kernel has the program's function";
}

struct Measured {
    Collective operation;
    Bytes bytes;
    Algorithm algorithm;
    double microseconds;
};

void expect(std::span<const Measured> rows, int ranks) {
    for (const Measured& row : rows) {
        CollTuning tuning;
        tuning.fixed.fill(row.algorithm);
        const CollChoice choice = choose_collective(
            on_node(row.operation, row.bytes, ranks, CollMemory::device), facts_of("h100"), tuning);
        ASSERT_EQ(choice.plan.algorithm, row.algorithm);
        const double ratio = static_cast<double>(choice.plan.expected) / 1e3 / row.microseconds;
        EXPECT_GT(ratio, 0.8) << name(row.operation) << " of " << row.bytes;
        EXPECT_LT(ratio, 1.25) << name(row.operation) << " of " << row.bytes;
    }
}

constexpr Collective kAlltoall = Collective::alltoall, kAllgather = Collective::allgather,
                     kAllreduce = Collective::allreduce, kBcast = Collective::bcast,
                     kScatter = Collective::reduce_scatter;
using enum Algorithm;

// bench/results/collectives-h100-2026-11-27.md
TEST(CollPlan, ExpectsWhatTwoH100sTookOverTheNodeSegment) {
    const Measured rows[] = {
        {kAlltoall, 8, direct, 15.5},
        {kAlltoall, 256 * kKiB, direct, 14.8},
        {kAlltoall, 4 * kMiB, direct, 27.1},
        {kAlltoall, 64 * kMiB, direct, 204.1},
        {kAllgather, 8, direct, 16.9},
        {kAllgather, 4 * kMiB, direct, 28.4},
        {kAllgather, 64 * kMiB, direct, 204.5},
        {kAllreduce, 8, one_shot, 15.4},
        {kAllreduce, 64 * kKiB, one_shot, 16.3},
        {kBcast, 8, direct, 13.4},
        {kBcast, 4 * kMiB, direct, 27.1},
        {kBcast, 64 * kMiB, direct, 205.7},
        {kBcast, 8, binomial, 8.7},
        {kBcast, 256 * kKiB, binomial, 10.1},
        {kBcast, 4 * kMiB, binomial, 21.6},
        {kBcast, 64 * kMiB, binomial, 184.7},
        {kScatter, 16, one_shot, 14.5},
        {kScatter, 8 * kMiB, one_shot, 29.9},
        {kScatter, 128 * kMiB, one_shot, 219.3},
        {kAllgather, 64 * kMiB, recursive_doubling, 257.2},
    };
    expect(rows, 2);
}

// bench/results/collectives-4xh100-2026-11-27.md
TEST(CollPlan, ExpectsWhatFourH100sTookOverTheNodeSegment) {
    const Measured rows[] = {
        {kAlltoall, 8, direct, 18.8},
        {kAlltoall, 256 * kKiB, direct, 22.1},
        {kAlltoall, 4 * kMiB, direct, 57.5},
        {kAllgather, 8, direct, 17.9},
        {kAllgather, kMiB, direct, 27.7},
        {kAllgather, 64 * kMiB, direct, 675.9},
        {kAllreduce, 8, one_shot, 22.7},
        {kAllreduce, 64 * kKiB, one_shot, 23.0},
        {kBcast, 8, direct, 16.1},
        {kBcast, 256 * kKiB, direct, 17.6},
        {kBcast, kMiB, direct, 25.4},
        {kBcast, 4 * kMiB, direct, 51.6},
        {kBcast, 64 * kMiB, direct, 571.2},
        {kScatter, 32, one_shot, 23.6},
        {kScatter, 4 * kMiB, one_shot, 37.0},
        {kScatter, 16 * kMiB, one_shot, 88.3},
        {Collective::reduce, 8, one_shot, 18.5},
        {Collective::reduce, 64 * kKiB, one_shot, 18.0},
        {Collective::reduce, 4 * kMiB, two_shots, 40.8},
        {Collective::reduce, 64 * kMiB, two_shots, 324.4},
        {Collective::gather, 8, direct, 17.2},
        {Collective::gather, 4 * kMiB, direct, 50.5},
        {Collective::gather, 64 * kMiB, direct, 557.6},
        {Collective::scatter, 8, direct, 17.6},
        {Collective::scatter, 4 * kMiB, direct, 52.0},
        {Collective::scatter, 64 * kMiB, direct, 562.5},
    };
    expect(rows, 4);
}

TEST(CollPlan, InsideNodesFirstWhereNodesHaveManyRanks) {
    CollFacts facts;
    CollQuestion asked = question(Collective::allreduce, 64 * kKiB, 32);
    asked.count = 8 * kKiB;
    const auto chosen = [&] { return choose_collective(asked, facts, {}).plan; };
    EXPECT_NE(chosen().algorithm, Algorithm::hierarchical);
    asked.shape.nodes = 4;
    asked.shape.most = asked.shape.fewest = 8;
    EXPECT_EQ(chosen().algorithm, Algorithm::hierarchical);
    EXPECT_EQ(chosen().leaders, 8);
    asked.shape.fewest = 3;
    EXPECT_EQ(chosen().leaders, 3);
    // The order of ranks is kept where those of a node follow each other.
    asked.commutative = false;
    EXPECT_EQ(chosen().algorithm, Algorithm::hierarchical);
    asked.shape.in_order = false;
    EXPECT_NE(chosen().algorithm, Algorithm::hierarchical);
    asked.commutative = true;
    const CollTuning reproducible{.reproducible = true};
    EXPECT_NE(choose_collective(asked, facts, reproducible).plan.algorithm,
              Algorithm::hierarchical);
}

TEST(CollPlan, AFixedAlgorithmThatCannotBeIsReplacedAndSaysWhy) {
    CollTuning tuning;
    tuning.fixed[static_cast<std::size_t>(Collective::allgather)] = Algorithm::recursive_doubling;
    const CollChoice choice = choose_collective(question(Collective::allgather, 64, 6), {}, tuning);
    EXPECT_NE(choice.plan.algorithm, Algorithm::recursive_doubling);
    bool said = false;
    for (const CollRejected& lost : choice.rejected)
        if (lost.algorithm == Algorithm::recursive_doubling) {
            EXPECT_THAT(lost.why, HasSubstr("no power of two"));
            said = true;
        }
    EXPECT_TRUE(said);
}

TEST(CollPlan, ExplainSaysWhichAlgorithmAndWhatItBeat) {
    Explain explain(true);
    const CollQuestion asked = question(Collective::allreduce, 8, 6);
    for (int call = 0; call < 3; ++call)
        explain.collective(asked, choose_collective(asked, {}, {}));
    const std::string text = explain.text(0);
    EXPECT_THAT(text, HasSubstr("allreduce"));
    EXPECT_THAT(text, HasSubstr("6 ranks  8 B  3 calls"));
    EXPECT_THAT(text, HasSubstr("recursive_doubling"));
    EXPECT_THAT(text, HasSubstr("ring: fewer elements than ranks"));
    Result<Record> read = record_from_json(explain.json(0));
    ASSERT_TRUE(read.ok()) << read.status().text();
    CollRecord same;
    for (int call = 0; call < 3; ++call)
        same.add(asked, choose_collective(asked, {}, {}));
    EXPECT_EQ(read->collectives, same.paths());
}

TEST(CollPlan, ExplainTellsTheSameStoryOfAllRanksOnce) {
    CollRecord record;
    const CollQuestion asked = question(Collective::bcast, 64 * kKiB, 4);
    record.add(asked, choose_collective(asked, {}, {}));
    std::vector<CollPath> all = record.paths(), others = record.paths();
    all.insert(all.end(), others.begin(), others.end());
    EXPECT_THAT(coll_table(all), HasSubstr("2 calls"));
    EXPECT_EQ(coll_table({}), "");
}

}  // namespace
}  // namespace gantry::plan
