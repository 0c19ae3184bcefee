// SPDX-License-Identifier: BSD-3-Clause
//
// Registered memory of a peer, read and written over a real UCX and TCP of this machine: by messages, as
// puts go there, and by UCX's own calls, as puts and gets go where a card is (UCX emulates it).
#include "ucx_world.hpp"

#include <algorithm>
#include <cstring>

namespace gantry::transport::ucx {
namespace {

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
    EXPECT_EQ(transport(0).stats().keys, KeyCounts{}) << "a message names the region itself";
    transport(1).release_memory(*region);
}

}  // namespace
}  // namespace gantry::transport::ucx
