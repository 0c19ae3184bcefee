// SPDX-License-Identifier: BSD-3-Clause
//
// One of the two connections to a peer breaks, as when a cable is cut while only one of them has
// something to say. The test shuts the sockets, in a process that holds both ranks: real UCX of any
// release, no machine needed.
#include "ucx_world.hpp"

#include <sys/socket.h>

namespace gantry::transport::ucx {
namespace {

class UcxBulkFaults : public UcxTest {
  protected:
    // Rank 0 has put to rank 1 by the second connection.
    void open_bulk() {
        config.peer_timeout = 500 * kMillisecond;
        ranks.clear();
        bulk.clear();
        start(2);
        region = transport(1).register_memory({sink.data(), sink.size()}).value();
        for (const int from : {0, 1}) {
            ASSERT_TRUE(transport(from).send(1 - from, 1, bytes("hello"), {}).ok());
            ASSERT_TRUE(until([&] { return notebook(1 - from).messages.size() == 1; }));
        }
        first = connections();
        ASSERT_TRUE(until([&] {
            Completion done(ranks[0]->executor);
            put(kMiB, done);
            EXPECT_TRUE(until([&] { return done.done() && done.status().ok(); }));
            return transport(0).zero_copy_puts() > 0;
        }));
        for (const int descriptor : connections())
            if (!first.contains(descriptor)) bulk.insert(descriptor);
        ASSERT_FALSE(bulk.empty());
    }
    void put(Bytes size, Completion& done) {
        transport(0).put(1, 0, source.data(), size, {}, transport(1).key(region), 0, done);
    }
    static void break_all(const std::set<int>& sockets) {
        for (const int descriptor : sockets)
            shutdown(descriptor, SHUT_RDWR);
    }
    // The peer stands still: only rank 0 is driven.
    bool until_alone(const std::function<bool()>& condition) {
        const SteadyClock clock;
        const Nanoseconds end = clock.now() + 10 * kSecond;
        while (!condition() && clock.now() < end)
            transport(0).progress();
        return condition();
    }
    void expect_lost_once(int by, int victim) {
        ASSERT_EQ(notebook(by).lost.size(), 1u) << "told to rank " << by;
        EXPECT_EQ(notebook(by).lost[0].first, victim);
        EXPECT_EQ(notebook(by).lost[0].second.error_class(), MPI_ERR_PROC_ABORTED);
    }

    std::vector<std::byte> source = std::vector<std::byte>(64 * kMiB, std::byte{1});
    std::vector<std::byte> sink = std::vector<std::byte>(64 * kMiB);
    Region region;
    std::set<int> first, bulk;
};

TEST_F(UcxBulkFaults, ABreakUnderAPutIsTheLossOfThePeerOnBothSidesAndThePutEndsWithAnError) {
    open_bulk();
    Completion done(ranks[0]->executor);
    put(source.size(), done);
    for (int i = 0; i < 4; ++i)
        turn();
    break_all(bulk);
    ASSERT_TRUE(until([&] {
        return done.done() && !notebook(0).lost.empty() && !notebook(1).lost.empty();
    })) << "put done "
        << done.done() << ", told " << notebook(0).lost.size() << notebook(1).lost.size();
    EXPECT_EQ(done.status().error_class(), MPI_ERR_PROC_ABORTED) << done.status().text();
    expect_lost_once(0, 1);
    expect_lost_once(1, 0);
}

// It may have carried messages.
TEST_F(UcxBulkFaults, ABreakWithNothingUnderWayIsALossWhenNoGoodbyeExplainsIt) {
    open_bulk();
    break_all(bulk);
    ASSERT_TRUE(until([&] { return !notebook(0).lost.empty() && !notebook(1).lost.empty(); }));
    expect_lost_once(0, 1);
    expect_lost_once(1, 0);
}

TEST_F(UcxBulkFaults, ABreakWithNothingUnderWayIsTheLossOfThePeerAtTheNextPut) {
    open_bulk();
    break_all(bulk);
    Completion done(ranks[0]->executor);
    put(kMiB, done);
    ASSERT_TRUE(until([&] { return done.done() && !notebook(0).lost.empty(); }));
    EXPECT_EQ(done.status().error_class(), MPI_ERR_PROC_ABORTED) << done.status().text();
    expect_lost_once(0, 1);
}

// How far the put has come is how often both have had a turn.
TEST_F(UcxBulkFaults, APutToAPeerThatStandsStillEndsWhenTheFirstConnectionBreaks) {
    for (const int turns : {0, 1, 2, 4, 8}) {
        open_bulk();
        Completion done(ranks[0]->executor);
        put(source.size(), done);
        for (int i = 0; i < turns; ++i)
            turn();
        break_all(first);
        ASSERT_TRUE(until_alone([&] { return done.done() && !notebook(0).lost.empty(); }))
            << "after " << turns << " turns";
        EXPECT_EQ(done.status().error_class(), MPI_ERR_PROC_ABORTED) << done.status().text();
        expect_lost_once(0, 1);
    }
}

TEST_F(UcxBulkFaults, WhoLeavesInOrderClosesBothConnectionsAndIsNotLost) {
    open_bulk();
    leave(*ranks[0]);
    ranks[0].reset();
    const SteadyClock clock;
    const Nanoseconds end = clock.now() + 2 * config.peer_timeout;
    while (clock.now() < end)
        turn();
    EXPECT_TRUE(notebook(1).lost.empty());
}

}  // namespace
}  // namespace gantry::transport::ucx
