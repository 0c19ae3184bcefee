// SPDX-License-Identifier: BSD-3-Clause
#include "job/pmi_server.hpp"

#include "job/store_text.hpp"

#include <fmt/format.h>
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
        char buffer[16384];
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

// Lines that nobody asked for would confuse clients that do not know them.
TEST_F(PmiServerOfTwoTest, DeathsAreToldToWhoAsksForThem) {
    EXPECT_EQ(answer_to("cmd=init pmi_version=1 pmi_subversion=1\n").find("deaths"),
              std::string::npos);
    server_.tell_death("7", 1);
    EXPECT_EQ(heard(), "");
    EXPECT_EQ(answer_to("cmd=watch_deaths job=7\n"), "cmd=death job=7 rank=1\n")
        << "also of those before";
    EXPECT_EQ(server_.number(), "7");
    server_.tell_death("8", 5);
    EXPECT_EQ(heard(), "cmd=death job=8 rank=5\n");
}

TEST_F(PmiServerOfTwoTest, WhoDiesBeforeTheJobHasANumberIsToldWithIt) {
    server_.offer_deaths();
    EXPECT_NE(answer_to("cmd=init pmi_version=1 pmi_subversion=1\n").find(" deaths=1\n"),
              std::string::npos);
    server_.lose(1);
    EXPECT_EQ(heard(), "");
    EXPECT_EQ(answer_to("cmd=watch_deaths job=7\n"), "cmd=death job=7 rank=1\n");
}

// Whoever has all pieces needs the server no more.
TEST_F(PmiServerTest, TheStoreIsCopiedPieceByPiece) {
    server_.offer_copies(kMiB);
    EXPECT_NE(answer_to("cmd=init pmi_version=1 pmi_subversion=1\n").find(" copies=1\n"),
              std::string::npos);
    std::map<std::string, std::string, std::less<>> store, copied;
    for (int i = 0; i < 40; ++i) {
        const std::string key = fmt::format("key-{}", i);
        store[key] = std::string(1000, static_cast<char>('a' + i % 26)) + "=";
        EXPECT_NE(answer_to(fmt::format("cmd=put key={} value={}\n", key, store[key])).find("rc=0"),
                  std::string::npos);
    }
    std::string last;
    for (bool whole = false; !whole;) {
        std::string answer = answer_to(fmt::format("cmd=copy_store after={}\n", last));
        ASSERT_TRUE(answer.ends_with('\n'));
        answer.pop_back();
        const PmiLine line(answer);
        ASSERT_TRUE(line.command() == "copied" && line.accepted()) << answer;
        whole = line.number("last") == 1;
        for (const auto& [key, value] : line.fields())
            if (key.starts_with("key-")) {
                copied[key] = value;
                last = key;
            }
    }
    EXPECT_EQ(copied, store);
}

TEST_F(PmiServerTest, AStoreThatIsTooLargeForEverybodyIsNotCopied) {
    server_ = PmiServer(100'000, "job", "");
    server_.offer_copies(100'000 *
                         Bytes{1001});  // of a piece of 1001 bytes with its name, one for each
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    server_.add_rank(0, ends[0], 0);
    close(std::exchange(rank_, ends[1]));
    answer_to("cmd=put key=a value=" + std::string(1000, 'x') + "\n");
    EXPECT_NE(answer_to("cmd=copy_store after=\n").find("cmd=copied rc=0"), std::string::npos);
    answer_to("cmd=put key=b value=\n");
    EXPECT_NE(answer_to("cmd=copy_store after=\n").find("cmd=copied rc=-1"), std::string::npos);
}

TEST_F(PmiServerTest, CopiesThatMayTakeNothingAreNotOffered) {
    server_.offer_copies(0);
    EXPECT_EQ(answer_to("cmd=init pmi_version=1 pmi_subversion=1\n").find("copies"),
              std::string::npos);
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
