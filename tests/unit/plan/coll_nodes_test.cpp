// SPDX-License-Identifier: BSD-3-Clause
//
// What collectives between nodes are expected to cost: cards that ranks share or have, pieces behind each
// other, device memory that is staged.
#include "coll_questions.hpp"
#include "plan/coll_model.hpp"

#include <gtest/gtest.h>

namespace gantry::plan {
namespace {

// H200s, eight of a node.
CollQuestion of_h200s(Collective operation, Bytes bytes, int ranks) {
    return question(operation, bytes, ranks, ranks / 8);
}

TEST(CollNodes, RanksWithACardOfTheirOwnTakeAShareEachBetweenNodes) {
    CollFacts facts = facts_of("h200");
    facts.network_reaches_devices = true;
    CollQuestion asked = of_h200s(Collective::allreduce, 256 * kKiB, 32);
    asked.memory = CollMemory::device;
    facts.cards = 8;
    const CollPlan each = choose_collective(asked, facts, {}).plan;
    EXPECT_EQ(each.algorithm, Algorithm::hierarchical);
    EXPECT_EQ(each.leaders, 8);
    // Eight cards for eight ranks are as good as one for one, and more are no better.
    EXPECT_EQ(network_rate(facts, 8), network_rate(facts, 1));
    EXPECT_EQ(network_rate(facts, 1), facts.between.bytes_per_second);
    EXPECT_EQ(network_rate(facts, 9), facts.between.bytes_per_second / 2);
    facts.cards = 1;
    EXPECT_EQ(network_rate(facts, 8), facts.between.bytes_per_second / 8);
    EXPECT_GT(choose_collective(asked, facts, {}).plan.expected, each.expected);
}

TEST(CollNodes, ACardThatReachesGpusIsThereForEachOfThem) {
    model::Machine machine = model::load("h200").value();
    EXPECT_EQ(coll_facts_of(machine).cards, 1);
    machine.network.device_memory = true;
    EXPECT_EQ(coll_facts_of(machine).cards, 8);
    EXPECT_TRUE(coll_facts_of(machine).network_reaches_devices);
}

TEST(CollNodes, NothingIsStagedWhereTheNetworkReachesGpusAndPartnersOfTheOwnNodeTakeTheirTime) {
    CollFacts facts = facts_of("h200");
    facts.network_reaches_devices = true;
    facts.cards = 8;
    for (const int ranks : {16, 32, 64})
        EXPECT_EQ(choose_collective(of_h200s(Collective::alltoall, 16 * kKiB, ranks), facts, {})
                      .plan.algorithm,
                  Algorithm::spread)
            << ranks;
}

TEST(CollNodes, LongBroadcastsThatMayBeStagedGoAlongAChain) {
    CollTuning tuning{.devices = true};
    const CollFacts facts = facts_of("c2050-qdr");
    const CollPlan chain =
        choose_collective(question(Collective::bcast, 4 * kMiB, 64, 64), facts, tuning).plan;
    EXPECT_EQ(chain.algorithm, Algorithm::chain);
    EXPECT_GE(chain.segment, 64 * kKiB);
    // Few numbers are in host memory.
    EXPECT_EQ(choose_collective(question(Collective::bcast, 4 * kKiB, 64, 64), facts, tuning).plan,
              choose_collective(question(Collective::bcast, 4 * kKiB, 64, 64), facts, {}).plan);
}

// Between pieces that ask first, too, some have asked while others are on their way.
TEST(CollNodes, APieceBehindOthersTakesLessThanTheFirst) {
    const CollFacts facts = facts_of("c2050-qdr");
    const CollQuestion asked = question(Collective::bcast, 4 * kMiB, 64, 64);
    const CollAsk ask(asked, facts, {});
    const double wire = 64. * kKiB * 1e9 / facts.between.bytes_per_second;
    EXPECT_GE(ask.further_shift(64 * kKiB), wire);
    EXPECT_LE(ask.further_shift(64 * kKiB), 0.9 * ask.shift(64 * kKiB, 1));
}

}  // namespace
}  // namespace gantry::plan
