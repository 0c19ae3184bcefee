// SPDX-License-Identifier: BSD-3-Clause
//
// The second connection breaks and the first does not, as when a cable is cut while only large puts
// are on their way. The test shuts the sockets that the second connection opened, in a process that
// holds both ranks: real UCX of any release, no machine needed.
#include "ucx_world.hpp"

#include <dirent.h>
#include <sys/socket.h>

#include <cstdlib>
#include <set>

namespace gantry::transport::ucx {
namespace {

// Of connected TCP sockets of this process.
std::set<int> connections() {
    std::set<int> found;
    DIR* folder = opendir("/proc/self/fd");
    if (folder == nullptr) return found;
    while (const dirent* entry = readdir(folder)) {
        const int descriptor = std::atoi(entry->d_name);
        sockaddr_storage peer{};
        socklen_t length = sizeof peer;
        if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &length) == 0 &&
            peer.ss_family == AF_INET)
            found.insert(descriptor);
    }
    closedir(folder);
    return found;
}

class UcxBulkFaults : public UcxTest {
  protected:
    // Rank 0 has put to rank 1 by the second connection.
    void open_bulk() {
        config.peer_timeout = 500 * kMillisecond;
        start(2);
        region = transport(1).register_memory({sink.data(), sink.size()}).value();
        for (const int from : {0, 1}) {
            ASSERT_TRUE(transport(from).send(1 - from, 1, bytes("hello"), {}).ok());
            ASSERT_TRUE(until([&] { return notebook(1 - from).messages.size() == 1; }));
        }
        const std::set<int> before = connections();
        ASSERT_TRUE(until([&] {
            Completion done(ranks[0]->executor);
            put(kMiB, done);
            EXPECT_TRUE(until([&] { return done.done() && done.status().ok(); }));
            return transport(0).straight_puts() > 0;
        }));
        for (const int descriptor : connections())
            if (!before.contains(descriptor)) bulk.insert(descriptor);
        ASSERT_FALSE(bulk.empty());
    }
    void put(Bytes size, Completion& done) {
        transport(0).put(1, 0, source.data(), size, {}, transport(1).key(region), 0, done);
    }
    void break_bulk() {
        for (const int descriptor : bulk)
            shutdown(descriptor, SHUT_RDWR);
    }
    void expect_lost_once(int by, int victim) {
        ASSERT_EQ(notebook(by).lost.size(), 1u) << "told to rank " << by;
        EXPECT_EQ(notebook(by).lost[0].first, victim);
        EXPECT_EQ(notebook(by).lost[0].second.error_class(), MPI_ERR_PROC_ABORTED);
    }

    std::vector<std::byte> source = std::vector<std::byte>(64 * kMiB, std::byte{1});
    std::vector<std::byte> sink = std::vector<std::byte>(64 * kMiB);
    Region region;
    std::set<int> bulk;
};

TEST_F(UcxBulkFaults, ABreakUnderAPutIsTheLossOfThePeerOnBothSidesAndThePutEndsWithAnError) {
    open_bulk();
    Completion done(ranks[0]->executor);
    put(source.size(), done);
    for (int i = 0; i < 4; ++i)
        turn();
    break_bulk();
    ASSERT_TRUE(until([&] {
        return done.done() && !notebook(0).lost.empty() && !notebook(1).lost.empty();
    })) << "put done "
        << done.done() << ", told " << notebook(0).lost.size() << notebook(1).lost.size();
    EXPECT_EQ(done.status().error_class(), MPI_ERR_PROC_ABORTED) << done.status().text();
    expect_lost_once(0, 1);
    expect_lost_once(1, 0);
}

TEST_F(UcxBulkFaults, ABreakWithNothingUnderWayIsTheLossOfThePeerOnBothSides) {
    open_bulk();
    break_bulk();
    ASSERT_TRUE(until([&] { return !notebook(0).lost.empty() && !notebook(1).lost.empty(); }));
    expect_lost_once(0, 1);
    expect_lost_once(1, 0);
}

TEST_F(UcxBulkFaults, APutAfterABreakThatNobodyWasToldOfEndsWithAnError) {
    open_bulk();
    break_bulk();
    Completion done(ranks[0]->executor);
    put(kMiB, done);
    ASSERT_TRUE(until([&] { return done.done(); }));
    EXPECT_EQ(done.status().error_class(), MPI_ERR_PROC_ABORTED) << done.status().text();
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
