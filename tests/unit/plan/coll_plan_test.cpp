// SPDX-License-Identifier: BSD-3-Clause
//
// The choice of collective algorithms as a pure function.
#include "plan/coll_plan.hpp"

#include "base/config.hpp"
#include "plan/coll_facts.hpp"
#include "plan/coll_model.hpp"
#include "plan/coll_table.hpp"
#include "plan/explain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace gantry::plan {
namespace {

using testing::HasSubstr;

CollQuestion question(Collective operation, Bytes bytes, int ranks, int nodes = 1) {
    CollQuestion asked{.operation = operation, .bytes = bytes, .count = bytes / 8};
    asked.shape = {.ranks = ranks,
                   .nodes = nodes,
                   .most = (ranks + nodes - 1) / nodes,
                   .fewest = ranks / nodes,
                   .in_order = true};
    return asked;
}

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
        // Two nodes of GPUs, where all of them can be.
        CollQuestion any = question(asked, 1024, 8);
        any.shape.nodes = 2;
        any.shape.most = any.shape.fewest = 4;
        CollFacts facts;
        facts.gpu.copy = 8000;
        facts.gpu.host_bytes_per_second = 5e10;
        for (const CollCandidate& candidate : candidates_of(CollAsk(any, facts, {})))
            expected.emplace_back(name(candidate.algorithm));
        EXPECT_THAT(words_of(list), testing::UnorderedElementsAreArray(expected)) << parameter;
        for (const std::string& word : expected) {
            ASSERT_TRUE(config::set(config, parameter, word).ok()) << parameter << "=" << word;
            const CollTuning tuning = coll_tuning_from(config);
            const CollChoice choice = choose_collective(any, facts, tuning);
            if (word == "auto") continue;
            EXPECT_EQ(name(choice.plan.algorithm), word);
            EXPECT_STREQ(choice.plan.why, "fixed by a parameter");
        }
    }
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
    EXPECT_EQ(chosen().lanes, 8);
    asked.shape.fewest = 3;
    EXPECT_EQ(chosen().lanes, 3);
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
    EXPECT_THAT(text, HasSubstr("reduce_bcast"));
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
