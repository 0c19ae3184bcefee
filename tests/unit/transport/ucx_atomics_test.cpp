// SPDX-License-Identifier: BSD-3-Clause
//
// Atomic operations on a peer's words, and its registered memory read and written, over a real UCX and TCP of this machine: by messages, as they
// go there, and by UCX's own calls, as they go where a card is (UCX emulates it).
#include "ucx_world.hpp"

#include <algorithm>
#include <cstring>

namespace gantry::transport::ucx {
namespace {

enum class By : std::uint8_t { messages, ucx };

class UcxAtomics : public UcxTest, public ::testing::WithParamInterface<By> {
  protected:
    void SetUp() override {
        UcxTest::SetUp();
        if (IsSkipped()) return;
        start(2);
        if (GetParam() == By::ucx) transport(0).one_sided_everywhere();
        Result<Region> made = transport(1).register_memory(extent(words));
        ASSERT_TRUE(made.ok()) << made.status().text();
        region = *made;
        key = transport(1).key(region);
    }
    void TearDown() override {
        if (region.id != 0) transport(1).release_memory(region);
        UcxTest::TearDown();
    }
    std::uint64_t update(AtomicOperation operation, AtomicOperands operands, Bytes offset = 8) {
        Completion done(ranks[0]->executor);
        std::uint64_t old = ~std::uint64_t{0};
        transport(0).atomic(1, operation, operands, key, offset, &old, done);
        EXPECT_TRUE(until([&] { return done.done(); }));
        EXPECT_TRUE(done.status().ok()) << done.status().text();
        return old;
    }
    std::uint64_t word(Bytes offset = 8) {
        std::uint64_t value = 0;
        std::memcpy(&value, words.data() + offset, sizeof value);
        return value;
    }
    void set(std::uint64_t value) { std::memcpy(words.data() + 8, &value, sizeof value); }

    std::vector<std::byte> words = std::vector<std::byte>(64);
    Region region;
    RemoteKey key;
};

constexpr std::uint64_t kWide = 0x1122'3344'5566'7788u;

TEST_P(UcxAtomics, FetchAddGivesTheOldValue) {
    set(kWide);
    EXPECT_EQ(update(AtomicOperation::fetch_add, {.operand = 5}), kWide);
    EXPECT_EQ(word(), kWide + 5);
    EXPECT_EQ(update(AtomicOperation::fetch_add, {.operand = ~std::uint64_t{0}}), kWide + 5);
    EXPECT_EQ(word(), kWide + 4) << "adding -1";
}
TEST_P(UcxAtomics, SwapAndCompareSwap) {
    set(kWide);
    EXPECT_EQ(update(AtomicOperation::swap, {.operand = 7}), kWide);
    EXPECT_EQ(word(), 7u);
    EXPECT_EQ(update(AtomicOperation::compare_swap, {.operand = 9, .compare = 8}), 7u);
    EXPECT_EQ(word(), 7u) << "it was not equal";
    EXPECT_EQ(update(AtomicOperation::compare_swap, {.operand = kWide, .compare = 7}), 7u);
    EXPECT_EQ(word(), kWide);
}
TEST_P(UcxAtomics, OfFourBytesLeaveTheNextFourAlone) {
    set(0xaaaa'bbbb'ffff'ffffu);
    EXPECT_EQ(update(AtomicOperation::fetch_add, {.width = 4, .operand = 2}), 0xffff'ffffu);
    EXPECT_EQ(word(), 0xaaaa'bbbb'0000'0001u);
    EXPECT_EQ(update(AtomicOperation::swap, {.width = 4, .operand = 3}), 1u);
    EXPECT_EQ(update(AtomicOperation::compare_swap, {.width = 4, .operand = 4, .compare = 3}), 3u);
    EXPECT_EQ(word(), 0xaaaa'bbbb'0000'0004u);
}
TEST_P(UcxAtomics, ManyAtOnceLoseNothing) {
    constexpr std::size_t kAll = 400;
    std::vector<std::unique_ptr<Completion>> done;
    std::vector<std::uint64_t> old(kAll);
    for (std::uint64_t& each : old) {
        done.push_back(std::make_unique<Completion>(ranks[0]->executor));
        transport(0).atomic(1, AtomicOperation::fetch_add, {.operand = 1}, key, 8, &each,
                            *done.back());
    }
    ASSERT_TRUE(until(
        [&] { return std::ranges::all_of(done, [](const auto& each) { return each->done(); }); }));
    EXPECT_EQ(word(), kAll);
    std::ranges::sort(old);
    for (std::size_t i = 0; i < old.size(); ++i)
        EXPECT_EQ(old[i], i) << "each sum was seen once";
}
TEST_P(UcxAtomics, AKeyThatComesAgainIsUnpackedOnce) {
    for (std::uint64_t i = 0; i < 10; ++i)
        EXPECT_EQ(update(AtomicOperation::fetch_add, {.operand = 1}), i);
    const KeyCounts expected = GetParam() == By::ucx ? KeyCounts{1, 9, 0} : KeyCounts{};
    EXPECT_EQ(transport(0).stats().keys, expected) << "a message names the region itself";
}
TEST_P(UcxAtomics, ADamagedKeyIsAnError) {
    Completion done(ranks[0]->executor);
    std::uint64_t old = 0;
    transport(0).atomic(1, AtomicOperation::swap, {}, RemoteKey{}, 0, &old, done);
    ASSERT_TRUE(done.done());
    EXPECT_EQ(done.status().error_class(), MPI_ERR_INTERN);
}
TEST_P(UcxAtomics, OnARankThatVanishedAreErrors) {
    if (GetParam() == By::ucx) GTEST_SKIP() << "not run: UCX 1.13 crashes in its emulation";
    update(AtomicOperation::swap, {.operand = 1});
    region = {};
    ranks[1].reset();
    Completion done(ranks[0]->executor);
    std::uint64_t old = 0;
    transport(0).atomic(1, AtomicOperation::swap, {}, key, 8, &old, done);
    ASSERT_TRUE(until([&] { return done.done(); }));
    EXPECT_EQ(done.status().error_class(), MPI_ERR_PROC_ABORTED) << done.status().text();
}

TEST_P(UcxAtomics, OnAWordThatIsNotThereAreErrors) {
    if (GetParam() == By::ucx) GTEST_SKIP() << "not run: only a card checks what it is asked for";
    for (const Bytes offset : {Bytes{12}, Bytes{60}, Bytes{1000}}) {  // not aligned, half out, out
        Completion done(ranks[0]->executor);
        std::uint64_t old = 0;
        transport(0).atomic(1, AtomicOperation::swap, {}, key, offset, &old, done);
        ASSERT_TRUE(until([&] { return done.done(); }));
        EXPECT_FALSE(done.status().ok()) << offset;
    }
}

INSTANTIATE_TEST_SUITE_P(By, UcxAtomics, ::testing::Values(By::messages, By::ucx),
                         [](const auto& test) {
                             return test.param == By::messages ? "Messages" : "Ucx";
                         });

// What cards do, by UCX's emulation over TCP.
TEST_F(UcxTest, OneSidedPutsUnpackAKeyThatComesAgainOnce) {
    start(2);
    transport(0).one_sided_everywhere();
    ASSERT_TRUE(transport(0).send(1, 1, bytes("connect"), {}).ok());
    std::vector<std::byte> source(kMiB, std::byte{0x5a}), sink(kMiB);
    Result<Region> from = transport(0).register_memory(extent(source));
    ASSERT_TRUE(from.ok());
    for (int i = 0; i < 5; ++i) {
        std::ranges::fill(sink, std::byte{});
        Result<Region> region = transport(1).register_memory(extent(sink));
        ASSERT_TRUE(region.ok());
        Completion done(ranks[0]->executor);
        transport(0).put(1, 0, source.data(), source.size(), *from, transport(1).key(*region), 0,
                         done);
        ASSERT_TRUE(until([&] { return done.done(); }));
        EXPECT_TRUE(done.status().ok()) << done.status().text();
        EXPECT_EQ(sink, source);
        transport(1).release_memory(*region);
    }
    transport(0).release_memory(*from);
    EXPECT_EQ(transport(0).stats().keys, (KeyCounts{1, 4, 0}));
}

TEST_F(UcxTest, GetsReadRegisteredMemoryOfAPeerThatWasNeverUsedBefore) {
    start(2);
    transport(0).one_sided_everywhere();
    std::vector<std::byte> source(kMiB);
    for (std::size_t i = 0; i < source.size(); ++i)
        source[i] = static_cast<std::byte>(i * 7 + i / 256);
    Result<Region> region = transport(1).register_memory(extent(source));
    ASSERT_TRUE(region.ok());
    const RemoteKey key = transport(1).key(*region);
    for (const Bytes some : {Bytes{8}, Bytes{4096}, kMiB / 2}) {
        for (const bool registered : {false, true}) {
            std::vector<std::byte> sink(some);
            Region into{};
            if (registered) {
                Result<Region> made = transport(0).register_memory(extent(sink));
                ASSERT_TRUE(made.ok());
                into = *made;
            }
            Completion done(ranks[0]->executor);
            transport(0).get(1, 0, sink.data(), some, into, key, 24, done);
            ASSERT_TRUE(until([&] { return done.done(); }));
            EXPECT_TRUE(done.status().ok()) << done.status().text();
            EXPECT_TRUE(std::equal(sink.begin(), sink.end(), source.begin() + 24)) << some;
            if (registered) transport(0).release_memory(into);
        }
    }
    Completion damaged(ranks[0]->executor);
    std::byte sink{};
    transport(0).get(1, 0, &sink, 1, {}, RemoteKey{}, 0, damaged);
    ASSERT_TRUE(damaged.done());
    EXPECT_EQ(damaged.status().error_class(), MPI_ERR_INTERN);
    transport(1).release_memory(*region);
}

TEST_F(UcxTest, APutMayBeTheFirstUseOfAPeer) {
    start(2);
    std::vector<std::byte> source(kMiB, std::byte{0x5a}), sink(kMiB);
    Result<Region> region = transport(1).register_memory(extent(sink));
    ASSERT_TRUE(region.ok());
    Completion done(ranks[0]->executor);
    transport(0).put(1, 0, source.data(), source.size(), {}, transport(1).key(*region), 0, done);
    ASSERT_TRUE(until([&] { return done.done(); }));
    EXPECT_TRUE(done.status().ok()) << done.status().text();
    EXPECT_EQ(sink, source);
    transport(1).release_memory(*region);
}

}  // namespace
}  // namespace gantry::transport::ucx
