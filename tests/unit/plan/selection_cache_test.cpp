// SPDX-License-Identifier: BSD-3-Clause
//
// The planner's answers, kept: they are the answers that it would give, and repeated questions are not
// planned again.
#include "plan/selection_cache.hpp"

#include "unit/plan/questions.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace gantry::test {
namespace {

using device::IpcKind;
using device::MemoryKind;
using plan::Facts;
using plan::Question;
using plan::SelectionCache;

// Two GPUs of a node.
struct Pair {
    transport::PeerFacts peer = shared_memory();
    plan::Machine machine{{h200(), other_h200()}, {&peer}};
    plan::Tuning tuning;
    Facts facts = [] {
        Facts known = two_gpus();
        known.network = 0;
        known.source_gpu = 0;
        known.sink_gpu = 1;
        return known;
    }();
};

Question between_devices(Bytes bytes) {
    return verdict(bytes, MemoryKind::device, MemoryKind::device, IpcKind::legacy);
}

TEST(SelectionCache, OtherRatesAreAnotherQuestionAndAnOldOneIsFoundAgain) {
    Pair pair;
    SelectionCache cache(pair.machine, pair.tuning, true);
    const Question question = offer(kMiB, MemoryKind::host);
    Facts facts = pair.facts;
    facts.reads = plan::Reads::measured;
    facts.rates.slots = plan::step_of(12e9, plan::kRateUnit);
    facts.rates.call = plan::step_of(500, plan::kTimeUnit);
    for (int round = 0; round < 2; ++round) {
        facts.rates.reads = plan::step_of(20e9, plan::kRateUnit);
        EXPECT_EQ(cache.select(question, facts).plan().protocol, plan::Protocol::cma);
        facts.rates.reads = plan::step_of(5e9, plan::kRateUnit);
        EXPECT_EQ(cache.select(question, facts).plan().protocol, plan::Protocol::pipeline);
    }
    EXPECT_EQ(cache.counts().misses, 2u);
}

// More questions than the cache holds, each often, while the allocations' counts rise. No process has
// work pending: what pending work puts off is asked about every eighth message more only (pays_at).
TEST(SelectionCache, AnswersAsThePlannerDoes) {
    for (unsigned seed = 1; seed <= 20; ++seed) {
        std::mt19937_64 random(seed);
        const auto coin = [&random] { return (random() & 1) != 0; };
        Pair pair;
        SelectionCache cache(pair.machine, pair.tuning, true);
        struct Asked {
            Question question;
            Facts facts;
        };
        std::vector<Asked> all;
        for (int i = 0; i < 400; ++i) {
            Asked asked{between_devices((Bytes{1} << random() % 24) + random() % 100), pair.facts};
            asked.question.source.kind = static_cast<MemoryKind>(random() % 4);
            asked.question.sink_known = coin();
            asked.question.eager_credit = coin();
            asked.question.synchronous = coin();
            asked.facts.ipc_open = coin();
            asked.facts.put_open = coin();
            asked.facts.descriptor = coin();
            all.push_back(asked);
        }
        for (int step = 0; step < 8000; ++step) {
            Asked& asked = all[random() % (step % 4 == 0 ? all.size() : 16)];
            if (asked.question.sink_known) {  // an offer knows no counts
                asked.facts.uses += static_cast<int>(random() % 20);
                asked.facts.put_uses += static_cast<int>(random() % 20);
            }
            const plan::Choice expected =
                choose(asked.question, asked.facts, pair.machine, pair.tuning);
            const plan::Selection& found = cache.select(asked.question, asked.facts);
            ASSERT_EQ(found.plan(), expected.plan) << "seed " << seed << ", step " << step;
            plan::Advice advice = found.advice();  // when to ask again may be put off in vain
            advice.source_pays_at = expected.advice.source_pays_at;
            advice.sink_pays_at = expected.advice.sink_pays_at;
            ASSERT_EQ(advice, expected.advice) << "seed " << seed << ", step " << step;
        }
        EXPECT_EQ(cache.counts().hits + cache.counts().misses, 8000u);
        EXPECT_GT(cache.counts().hits, 4000u);
    }
}

TEST(SelectionCache, PlansARepeatedQuestionOnce) {
    Pair pair;
    SelectionCache cache(pair.machine, pair.tuning, true);
    for (int i = 0; i < 100; ++i)
        for (const Bytes bytes : {Bytes{8}, 4 * kKiB, 4 * kMiB})
            cache.select(between_devices(bytes), pair.facts);
    EXPECT_EQ(cache.counts().misses, 3u);
    EXPECT_EQ(cache.counts().hits, 297u);
}

TEST(SelectionCache, SwitchedOffPlansEachQuestion) {
    Pair pair;
    SelectionCache cache(pair.machine, pair.tuning, false);
    const SelectionCache::Hint hint{1, 2, 3, 4};
    for (int i = 0; i < 10; ++i) {
        plan::Selection& found = cache.select(between_devices(8), pair.facts);
        cache.note(hint, found);
        EXPECT_EQ(cache.known(hint), nullptr);
    }
    EXPECT_EQ(cache.counts().misses, 10u);
    EXPECT_EQ(cache.counts().hits, 0u);
}

// An allocation has staged so much that opening it pays: that answer is for this allocation alone.
TEST(SelectionCache, AnAnswerThatOpensAMappingIsForOneAllocation) {
    Pair pair;
    pair.facts.ipc_open = pair.facts.put_open = false;
    SelectionCache cache(pair.machine, pair.tuning, true);
    Facts used = pair.facts;
    used.uses = 200;
    const Question question = between_devices(4 * kMiB);
    const SelectionCache::Hint hint{1, 2, 3, 4};
    plan::Selection& opening = cache.select(question, used);
    EXPECT_TRUE(opening.advice().opens);
    cache.note(hint, opening);
    EXPECT_EQ(cache.known(hint), nullptr);
    EXPECT_FALSE(cache.select(question, pair.facts).advice().opens);
}

TEST(SelectionCache, AHintLeadsToItsSelectionAsLongAsThatIsThere) {
    Pair pair;
    SelectionCache cache(pair.machine, pair.tuning, true);
    const SelectionCache::Hint hint{1, 2, 3, 4};
    SelectionCache::Hint later = hint;
    ++later.peer_and_epoch;
    plan::Selection& found = cache.select(between_devices(8), pair.facts);
    EXPECT_EQ(cache.known(hint), nullptr);
    cache.note(hint, found);
    EXPECT_EQ(cache.known(hint), &found);
    EXPECT_EQ(cache.known(later), nullptr);
    for (Bytes bytes = 1; bytes < 2000; ++bytes)  // until another question has taken its place
        cache.select(between_devices(bytes + 100), pair.facts);
    EXPECT_EQ(cache.known(hint), nullptr);
}

TEST(Mechanisms, AreSwitchedByAListOfNames) {
    const plan::Mechanisms all;
    plan::Mechanisms none, only, without;
    none.selection_cache = none.rts_templates = none.one_copy = none.notify_flags = false;
    none.cut_through = none.ready_to_receive = none.batches = none.node_segment = none.claims =
        false;
    none.cma = none.anchors = false;
    only = none;
    only.batches = only.one_copy = true;
    without.claims = false;
    EXPECT_EQ(*plan::mechanisms_from(""), all);
    EXPECT_EQ(*plan::mechanisms_from("all"), all);
    EXPECT_EQ(*plan::mechanisms_from("none"), none);
    EXPECT_EQ(*plan::mechanisms_from("none,batches,one_copy"), only);
    EXPECT_EQ(*plan::mechanisms_from("all,-claims"), without);
    EXPECT_EQ(*plan::mechanisms_from("-claims"), without);
    const Result<plan::Mechanisms> wrong = plan::mechanisms_from("all,-clams");
    ASSERT_FALSE(wrong.ok());
    EXPECT_NE(wrong.status().text().find("clams is no mechanism"), std::string_view::npos);
    EXPECT_NE(wrong.status().text().find("claims"), std::string_view::npos);
}

}  // namespace
}  // namespace gantry::test
