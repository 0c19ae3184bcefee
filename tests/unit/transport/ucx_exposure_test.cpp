// SPDX-License-Identifier: BSD-3-Clause
//
// Memory that messages expose over TCP: got without a copy, declined, taken back, lost with
// either end, and whole when the lender leaves at once.
#include "ucx_world.hpp"

#include <algorithm>
#include <optional>

namespace gantry::transport::ucx {
namespace {

class UcxExposureTest : public UcxTest {
  protected:
    void SetUp() override {
        UcxTest::SetUp();
        if (IsSkipped()) return;
        for (std::size_t i = 0; i < source.size(); ++i)
            source[i] = static_cast<std::byte>(i * 7 + i / 256);
    }
    // Two ranks whose second connection is open.
    void start_lending() {
        start(2);
        ASSERT_TRUE(transport(0).send(1, 1, bytes("connect"), {}).ok());
        ASSERT_TRUE(until([&] { return transport(0).exposes(1); }));
        notebook(1).messages.clear();
    }
    std::unique_ptr<Completion> expose(std::uint64_t number) {
        auto done = std::make_unique<Completion>(ranks[0]->executor);
        EXPECT_TRUE(
            transport(0)
                .expose(1, 7, bytes("announced"), number, source.data(), source.size(), *done)
                .ok());
        return done;
    }
    bool announced(std::size_t messages) {
        return until([&] { return notebook(1).messages.size() >= messages; });
    }

    std::vector<std::byte> source = std::vector<std::byte>(4 * kMiB + 3);
    std::vector<std::byte> sink = std::vector<std::byte>(4 * kMiB + 3);
};

TEST_F(UcxExposureTest, IsAnnouncedByItsMessageAndFetchedWhole) {
    start_lending();
    for (std::uint64_t number = 1; number <= 3; ++number) {
        std::fill(sink.begin(), sink.end(), std::byte{});
        const auto exposed = expose(number);
        ASSERT_TRUE(announced(number));
        EXPECT_EQ(notebook(1).messages.back().kind, 7);
        EXPECT_EQ(notebook(1).messages.back().header, "announced");
        EXPECT_TRUE(notebook(1).messages.back().payload.empty());
        EXPECT_FALSE(exposed->done()) << "nobody has fetched it";
        Completion got(ranks[1]->executor);
        transport(1).get_exposed(0, number, sink.data(), sink.size(), got);
        ASSERT_TRUE(until([&] { return got.done() && exposed->done(); }));
        EXPECT_TRUE(got.status().ok()) << got.status().text();
        EXPECT_TRUE(exposed->status().ok()) << exposed->status().text();
        EXPECT_TRUE(sink == source);
    }
    EXPECT_EQ(transport(0).exposures(), 3u);
    EXPECT_EQ(transport(0).zero_copy_puts(), 0u);
}

TEST_F(UcxExposureTest, AreFetchedInAnyOrder) {
    start_lending();
    std::vector<std::unique_ptr<Completion>> exposed;
    for (const std::uint64_t number : {11, 12, 13})
        exposed.push_back(expose(number));
    ASSERT_TRUE(announced(3));
    for (const std::uint64_t number : {13, 11, 12}) {
        std::fill(sink.begin(), sink.end(), std::byte{});
        Completion got(ranks[1]->executor);
        transport(1).get_exposed(0, number, sink.data(), sink.size(), got);
        ASSERT_TRUE(until([&] { return got.done(); }));
        EXPECT_TRUE(got.status().ok() && sink == source) << number;
        EXPECT_TRUE(until([&] { return exposed[number - 11]->done(); })) << number;
    }
}

TEST_F(UcxExposureTest, ThatIsTakenBackTellsNobody) {
    start_lending();
    const auto exposed = expose(5);
    ASSERT_TRUE(announced(1));
    transport(0).take_back(1, 5);
    const auto next = expose(6);  // and the connection goes on
    ASSERT_TRUE(announced(2));
    Completion got(ranks[1]->executor);
    transport(1).get_exposed(0, 6, sink.data(), sink.size(), got);
    ASSERT_TRUE(until([&] { return got.done() && next->done(); }));
    EXPECT_TRUE(sink == source);
    EXPECT_FALSE(exposed->done());
}

TEST_F(UcxExposureTest, CannotBeFetchedWhereNobodyLends) {
    config.tcp_zero_copy = 0;
    start(2);
    Completion got(ranks[1]->executor);
    transport(1).get_exposed(0, 99, sink.data(), sink.size(), got);
    ASSERT_TRUE(got.done());
    EXPECT_EQ(got.status().error_class(), MPI_ERR_INTERN);
}

TEST_F(UcxExposureTest, OfAnotherSizeThanFetchedIsAnErrorAndTouchesNothing) {
    start_lending();
    const auto exposed = expose(1);
    ASSERT_TRUE(announced(1));
    Completion got(ranks[1]->executor);
    transport(1).get_exposed(0, 1, sink.data(), sink.size() - 1, got);
    ASSERT_TRUE(until([&] { return got.done() && exposed->done(); }));
    EXPECT_EQ(got.status().error_class(), MPI_ERR_INTERN);
    EXPECT_TRUE(std::ranges::all_of(sink, [](std::byte each) { return each == std::byte{}; }));
    const auto next = expose(2);  // and the connection goes on
    ASSERT_TRUE(announced(2));
    Completion again(ranks[1]->executor);
    transport(1).get_exposed(0, 2, sink.data(), sink.size(), again);
    ASSERT_TRUE(until([&] { return again.done(); }));
    EXPECT_TRUE(again.status().ok() && sink == source);
}

TEST_F(UcxExposureTest, IsWholeWhenItsLenderLeavesAtOnce) {
    for (int round = 0; round < 5; ++round) {
        start_lending();
        std::fill(sink.begin(), sink.end(), std::byte{});
        const auto exposed = expose(1);
        ASSERT_TRUE(announced(1));
        Completion got(ranks[1]->executor);
        transport(1).get_exposed(0, 1, sink.data(), sink.size(), got);
        ASSERT_TRUE(until([&] { return exposed->done(); }));
        leave(*ranks[0]);
        ranks[0].reset();
        ASSERT_TRUE(until([&] { return got.done(); }));
        EXPECT_TRUE(got.status().ok()) << got.status().text();
        EXPECT_TRUE(sink == source);
        leave(*ranks[1]);
        ranks.clear();
    }
}

TEST_F(UcxExposureTest, EndsWithAnErrorWhenTheBorrowerVanishes) {
    for (const bool fetching : {false, true}) {
        start_lending();
        auto exposed = expose(1);
        ASSERT_TRUE(announced(1));
        std::optional<Completion> got;
        if (fetching) {
            got.emplace(ranks[1]->executor);
            transport(1).get_exposed(0, 1, sink.data(), sink.size(), *got);
            ranks[1]->transport.progress();
        }
        ranks[1].reset();
        ASSERT_TRUE(until([&] { return !notebook(0).lost.empty() && exposed->done(); }));
        EXPECT_EQ(exposed->status().error_class(), MPI_ERR_PROC_ABORTED)
            << exposed->status().text();
        EXPECT_EQ(notebook(0).lost.size(), 1u);
        leave(*ranks[0]);
        ranks.clear();
    }
}

TEST_F(UcxExposureTest, EndsWithAnErrorWhenTheLenderVanishes) {
    for (const bool fetching : {false, true}) {
        start_lending();
        ASSERT_TRUE(transport(1).send(0, 1, bytes("connect"), {}).ok());
        ASSERT_TRUE(until([&] { return !notebook(0).messages.empty(); }));
        auto exposed = expose(1);
        ASSERT_TRUE(announced(1));
        Completion got(ranks[1]->executor);
        if (fetching) {
            transport(1).get_exposed(0, 1, sink.data(), sink.size(), got);
            ranks[1]->transport.progress();
        }
        ranks[0].reset();
        ASSERT_TRUE(until([&] { return !notebook(1).lost.empty(); }));
        if (!fetching) transport(1).get_exposed(0, 1, sink.data(), sink.size(), got);
        ASSERT_TRUE(until([&] { return got.done(); }));
        EXPECT_EQ(got.status().error_class(), MPI_ERR_PROC_ABORTED) << got.status().text();
        EXPECT_EQ(notebook(1).lost.size(), 1u);
        leave(*ranks[1]);
        ranks.clear();
    }
}

TEST_F(UcxExposureTest, NeedsTheSecondConnection) {
    config.tcp_zero_copy = 0;
    start(2);
    ASSERT_TRUE(transport(0).send(1, 1, bytes("connect"), {}).ok());
    ASSERT_TRUE(until([&] { return notebook(1).messages.size() == 1; }));
    EXPECT_FALSE(transport(0).exposes(1));
}

}  // namespace
}  // namespace gantry::transport::ucx
