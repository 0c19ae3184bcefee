// SPDX-License-Identifier: BSD-3-Clause
#include "job/pmi_server.hpp"

#include "job/store_text.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace gantry::job {
namespace {

// A server of one rank, and that rank's end of the socket.
class PmiServerTest : public testing::Test {
  protected:
    void SetUp() override {
        int ends[2];
        ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        server_.add_rank(0, ends[0], 0);
        rank_ = ends[1];
    }
    void TearDown() override {
        server_.close_socket(0);
        close(rank_);
    }
    // What the rank is told when it says that.
    std::string answer_to(const std::string& lines) {
        EXPECT_EQ(write(rank_, lines.data(), lines.size()), static_cast<ssize_t>(lines.size()));
        server_.serve(0);
        return heard();
    }
    std::string heard() {
        char buffer[4096];
        const ssize_t length = recv(rank_, buffer, sizeof buffer, MSG_DONTWAIT);
        return {buffer, static_cast<std::size_t>(length > 0 ? length : 0)};
    }
    PmiServer server_{1, "job", ""};
    int rank_ = -1;
};

// A job of two, of which the other rank is no process.
class PmiServerOfTwoTest : public PmiServerTest {
  protected:
    PmiServerOfTwoTest() { server_ = PmiServer(2, "job", ""); }
};

TEST_F(PmiServerOfTwoTest, NoBarrierWaitsForARankThatIsLost) {
    EXPECT_NE(answer_to("cmd=init pmi_version=1 pmi_subversion=1\n").find("rc=0"),
              std::string::npos);
    EXPECT_EQ(answer_to("cmd=barrier_in\n"), "");
    EXPECT_FALSE(server_.has_begun());
    server_.lose(1);
    EXPECT_EQ(heard(), "cmd=barrier_out rc=0\n");
    EXPECT_TRUE(server_.has_begun());
    EXPECT_EQ(server_.membership(1), Membership::finalized);
    EXPECT_EQ(answer_to("cmd=barrier_in\n"), "cmd=barrier_out rc=0\n");
}

TEST_F(PmiServerTest, NamesArePublishedLookedUpAndTakenBack) {
    Names names;
    server_.keep_names(names);
    EXPECT_NE(answer_to("cmd=lookup_name service=a\n").find("rc=1"), std::string::npos);
    EXPECT_NE(answer_to("cmd=publish_name service=a port=p\n").find("rc=0"), std::string::npos);
    EXPECT_NE(answer_to("cmd=publish_name service=a port=q\n").find("rc=1"), std::string::npos);
    EXPECT_NE(answer_to("cmd=lookup_name service=a\n").find("port=p"), std::string::npos);
    EXPECT_NE(answer_to("cmd=unpublish_name service=a\n").find("rc=0"), std::string::npos);
    EXPECT_NE(answer_to("cmd=unpublish_name service=a\n").find("rc=1"), std::string::npos);
    EXPECT_TRUE(names.empty());
}

TEST_F(PmiServerTest, WithoutATableOfNamesItSaysSo) {
    EXPECT_NE(answer_to("cmd=publish_name service=a port=p\n").find("no_name_server"),
              std::string::npos);
}

TEST_F(PmiServerTest, ItsOwnerAnswersASpawn) {
    server_.take_spawns();
    EXPECT_EQ(answer_to("mcmd=spawn\nnprocs=2\nexecname=a\ntotspawns=1\nspawnssofar=1\nendcmd\n"),
              "");
    const std::optional<PmiServer::Spawn> wanted = server_.next_spawn();
    ASSERT_TRUE(wanted.has_value());
    EXPECT_FALSE(server_.next_spawn().has_value());
    EXPECT_EQ(wanted->rank, 0);
    EXPECT_EQ(wanted->request.programs[0].ranks, 2);
    server_.answer_spawn(0, "no room");
    EXPECT_EQ(heard(), "cmd=spawn_result rc=1 msg=not_started text=" + base64("no room") + "\n");
    server_.answer_spawn(0, "");
    EXPECT_EQ(heard(), "cmd=spawn_result rc=0 msg=success\n");
}

TEST_F(PmiServerTest, WithoutAnOwnerWhoSpawnsItRefuses) {
    EXPECT_NE(answer_to("mcmd=spawn\nexecname=a\ntotspawns=1\nendcmd\n").find("rc=1"),
              std::string::npos);
}

}  // namespace
}  // namespace gantry::job
