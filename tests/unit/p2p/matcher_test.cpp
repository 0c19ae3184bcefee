// SPDX-License-Identifier: BSD-3-Clause
//
// Matching order of MPI 5.0 section 3.5, by example and against a slow, obvious model over random
// programs.
#include "p2p/matcher.hpp"

#include <gtest/gtest.h>

#include <list>
#include <random>

namespace gantry::p2p {
namespace {

class StillClock final : public Clock {
  public:
    Nanoseconds now() const override { return 0; }
};

struct MatcherTest : ::testing::Test {
    StillClock clock;
    Executor executor{clock};
    Matcher matcher;
    std::list<Request> requests;

    Request& post(int source, int tag, std::uint32_t context = 1) {
        Request& request = requests.emplace_back();
        request.context = context;
        request.source = source;
        request.tag = tag;
        request.peer = source;
        matcher.post(request);
        return request;
    }
    void keep(int source, int tag, std::uint64_t mark, std::uint32_t context = 1) {
        auto message = std::make_unique<Incoming>(executor);
        message->envelope = {context, source, tag, 0, mark};
        matcher.keep(std::move(message));
    }
    Request* arrive(int source, int tag, std::uint32_t context = 1) {
        return matcher.arrive({context, source, tag, 0, 0});
    }
};

TEST_F(MatcherTest, OldestReceiveWinsForOneSource) {
    Request& first = post(3, 7);
    Request& second = post(3, 7);
    EXPECT_EQ(arrive(3, 7), &first);
    EXPECT_EQ(arrive(3, 7), &second);
    EXPECT_EQ(arrive(3, 7), nullptr);
}

TEST_F(MatcherTest, SaysWhichReceiveAnEnvelopeWouldTakeAndLeavesIt) {
    const wire::Envelope envelope{1, 3, 7, 0, 0};
    EXPECT_EQ(matcher.first_for(envelope), nullptr);
    Request& any = post(MPI_ANY_SOURCE, MPI_ANY_TAG);
    post(3, 7);
    EXPECT_EQ(matcher.first_for(envelope), &any);
    EXPECT_EQ(matcher.first_for(envelope), &any);
    EXPECT_EQ(arrive(3, 7), &any);
}

TEST_F(MatcherTest, KnowsTheNewestUnexpectedMessageByItsEnvelope) {
    const wire::Envelope older{1, 3, 7, 0, 10}, newest{1, 3, 7, 0, 11};
    EXPECT_EQ(matcher.kept(newest), nullptr);
    keep(3, 7, 10);
    keep(3, 7, 11);
    keep(4, 7, 12);
    ASSERT_NE(matcher.kept(newest), nullptr);
    EXPECT_EQ(matcher.kept(newest)->envelope.bytes, 11u);
    EXPECT_EQ(matcher.kept(older), nullptr);
}

TEST_F(MatcherTest, AMessageIsTakenBackByItsSenderAndNumberAlone) {
    for (const int peer : {3, 4}) {
        auto message = std::make_unique<Incoming>(executor);
        message->envelope = {1, peer, 7, 0, 0};
        message->peer = peer;
        message->synchronous_id = 12;
        matcher.keep(std::move(message));
    }
    EXPECT_EQ(matcher.take_sent(3, 11), nullptr);
    const auto taken = matcher.take_sent(4, 12);
    ASSERT_NE(taken, nullptr);
    EXPECT_EQ(taken->peer, 4);
    EXPECT_EQ(matcher.take_sent(4, 12), nullptr);
    EXPECT_EQ(matcher.find(1, 4, 7), nullptr);
    EXPECT_NE(matcher.find(1, 3, 7), nullptr);
}

TEST_F(MatcherTest, OldestReceiveWinsBetweenNamedAndAnySource) {
    Request& any = post(MPI_ANY_SOURCE, 7);
    Request& exports = post(3, 7);
    EXPECT_EQ(arrive(3, 7), &any);
    EXPECT_EQ(arrive(3, 7), &exports);
}

TEST_F(MatcherTest, TagsAndContextsKeepMessagesApart) {
    post(0, 1);
    EXPECT_EQ(arrive(0, 2), nullptr);
    EXPECT_EQ(arrive(0, 1, 2), nullptr);
    EXPECT_NE(arrive(0, 1), nullptr);
}

TEST_F(MatcherTest, AnySourceTakesUnexpectedMessagesInOrderOfArrival) {
    keep(5, 0, 1);
    keep(2, 0, 2);
    keep(5, 0, 3);
    EXPECT_EQ(matcher.take(1, MPI_ANY_SOURCE, 0)->envelope.bytes, 1u);
    EXPECT_EQ(matcher.take(1, 5, MPI_ANY_TAG)->envelope.bytes, 3u);
    EXPECT_EQ(matcher.take(1, MPI_ANY_SOURCE, MPI_ANY_TAG)->envelope.bytes, 2u);
    EXPECT_EQ(matcher.take(1, MPI_ANY_SOURCE, MPI_ANY_TAG), nullptr);
}

TEST_F(MatcherTest, WithdrawnReceivesTakeNothing) {
    Request& request = post(1, 1);
    matcher.withdraw(request);
    EXPECT_FALSE(matcher.posted(request));
    EXPECT_EQ(arrive(1, 1), nullptr);
}

TEST_F(MatcherTest, ALostPeerFreesOnlyTheReceivesThatNameIt) {
    Request& exports = post(4, 0);
    Request& other = post(5, 0);
    Request& any = post(MPI_ANY_SOURCE, 0);
    EXPECT_EQ(matcher.withdraw_from(4), std::vector<Request*>{&exports});
    EXPECT_TRUE(matcher.posted(other));
    EXPECT_TRUE(matcher.posted(any));
    EXPECT_TRUE(matcher.withdraw_any([](const Request&) { return false; }).empty());
    EXPECT_EQ(matcher.withdraw_any([](const Request&) { return true; }),
              std::vector<Request*>{&any});
    EXPECT_FALSE(matcher.posted(any));
    EXPECT_TRUE(matcher.posted(other));
}

// The model keeps two plain lists and scans them.
TEST_F(MatcherTest, AgreesWithAnObviousModelOnRandomPrograms) {
    struct Posted {
        int source, tag;
        Request* request;
    };
    struct UnexpectedBuffer {
        int source, tag;
        std::uint64_t mark;
    };
    for (unsigned seed = 1; seed <= 50; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        std::mt19937 random(seed);
        std::list<Posted> posted;
        std::list<UnexpectedBuffer> kept;
        const std::uint32_t context = 100 + seed;
        for (std::uint64_t step = 1; step <= 400; ++step) {
            const int source = static_cast<int>(random() % 3);
            const int tag = static_cast<int>(random() % 3);
            if (random() % 2 == 0) {  // a message arrives
                Request* expected = nullptr;
                for (auto it = posted.begin(); it != posted.end(); ++it) {
                    if ((it->source != MPI_ANY_SOURCE && it->source != source) ||
                        (it->tag != MPI_ANY_TAG && it->tag != tag))
                        continue;
                    expected = it->request;
                    posted.erase(it);
                    break;
                }
                ASSERT_EQ(arrive(source, tag, context), expected);
                if (expected == nullptr) {
                    keep(source, tag, step, context);
                    kept.push_back({source, tag, step});
                }
            } else {  // a receive is posted
                const int want_source = random() % 3 == 0 ? MPI_ANY_SOURCE : source;
                const int want_tag = random() % 3 == 0 ? MPI_ANY_TAG : tag;
                std::uint64_t expected = 0;
                for (auto it = kept.begin(); it != kept.end(); ++it) {
                    if ((want_source != MPI_ANY_SOURCE && it->source != want_source) ||
                        (want_tag != MPI_ANY_TAG && it->tag != want_tag))
                        continue;
                    expected = it->mark;
                    kept.erase(it);
                    break;
                }
                auto taken = matcher.take(context, want_source, want_tag);
                ASSERT_EQ(taken != nullptr ? taken->envelope.bytes : 0, expected);
                if (taken == nullptr)
                    posted.push_back(
                        {want_source, want_tag, &post(want_source, want_tag, context)});
            }
        }
    }
    for (Request& request : requests)
        request.unlink();
}

}  // namespace
}  // namespace gantry::p2p
