// SPDX-License-Identifier: BSD-3-Clause
//
// The record of paths: what it keeps, how it reads, and that a program and its helper understand
// each other.
#include "golden/scenes.hpp"
#include "plan/explain.hpp"
#include "plan/text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

namespace gantry::test {
namespace {

using device::MemoryKind;
using testing::HasSubstr;
using testing::Not;

void record(plan::Explain& explain, Bytes bytes, int peer, MemoryKind source = MemoryKind::device) {
    const plan::Question question{.bytes = bytes,
                                  .source = end(source, device::IpcKind::none),
                                  .sink = end(source, device::IpcKind::none),
                                  .sink_known = true};
    const auto with = facts(qdr(), c2050(), c2050());
    explain.record(question, choose(question, with, {}), peer, /*received=*/true);
}

TEST(Explain, RecordsNothingUnlessAskedTo) {
    plan::Explain explain(false);
    record(explain, kMiB, 1);
    EXPECT_THAT(explain.json(0), Not(HasSubstr("pipeline")));
    EXPECT_TRUE(explain.write(0, "").ok());
}

TEST(Explain, SaysWhichPathWhyAndWhatItBeat) {
    plan::Explain explain(true);
    record(explain, 4 * kMiB, 1);
    const std::string text = explain.text(0);
    EXPECT_THAT(text, HasSubstr("1->0"));
    EXPECT_THAT(text, HasSubstr("device -> device"));
    EXPECT_THAT(text, HasSubstr("pipeline"));
    EXPECT_THAT(text, HasSubstr("the copies hide behind the link"));
    EXPECT_THAT(text, HasSubstr("ipc: the peer is on another node"));
    EXPECT_THAT(text, HasSubstr("4 MiB"));
}

TEST(Explain, WindowsHaveTheirNumberAndTheNameThatTheProgramGaveThem) {
    plan::Explain explain(true);
    record(explain, kMiB, 1);
    explain.note_of_window(1, "operations are copies");
    explain.note_of_window(2, "operations go as messages");
    explain.note("a rail is down");
    explain.name_window(2, "halo");
    const std::string text = explain.text(3);
    EXPECT_THAT(text, HasSubstr("rank 3: window 1: operations are copies\n"));
    EXPECT_THAT(text, HasSubstr("rank 3: window 2 (halo): operations go as messages\n"));
    EXPECT_THAT(text, HasSubstr("rank 3: a rail is down\n"));
    explain.name_window(2, "");
    EXPECT_THAT(explain.text(3), HasSubstr("window 2: operations go as messages\n"));
}

TEST(Explain, CountsStagedBytesOfThisRank) {
    plan::Explain explain(true);
    for (int i = 0; i < 3; ++i)
        record(explain, kMiB, 1);
    auto read = plan::record_from_json(explain.json(0));
    ASSERT_TRUE(read.ok()) << read.status().text();
    const std::vector<plan::Path>& paths = read->paths;
    ASSERT_EQ(paths.size(), 1u);
    EXPECT_EQ(paths[0].messages, 3u);
    EXPECT_EQ(paths[0].bytes, 3 * kMiB);
    EXPECT_EQ(paths[0].staged, 3 * kMiB);
}

TEST(Explain, SizesAndPeersWithTheSameStoryAreOneRow) {
    plan::Explain explain(true);
    for (int peer : {1, 2})
        for (Bytes bytes : {Bytes{8}, Bytes{64}, Bytes{1024}})
            record(explain, bytes, peer, MemoryKind::host);
    const std::string text = explain.text(0);
    EXPECT_THAT(text, HasSubstr("1->0 2->0"));
    EXPECT_THAT(text, HasSubstr("8 B - 1 KiB"));
    EXPECT_EQ(text.find("eager", text.find("eager") + 1), text.find("eager", text.find("how")))
        << text;
}

// The first messages are read, and most of them put once the sender knows where to.
TEST(Explain, TellsApartWhoCopies) {
    plan::Explain explain(true);
    const plan::Question question{.bytes = 64, .source = {}, .sink = {}, .sink_known = true};
    plan::Choice choice{.plan = {.protocol = plan::Protocol::ipc}, .advice = {}, .rejected = {}};
    for (int message = 0; message < 10; ++message) {
        choice.plan.executor = message < 2 ? plan::Executor::receiver : plan::Executor::sender;
        explain.record(question, choice, 1, /*received=*/true);
    }
    auto read = plan::record_from_json(explain.json(0));
    ASSERT_TRUE(read.ok());
    ASSERT_EQ(read->paths.size(), 2u);
    EXPECT_EQ(read->paths[0].messages + read->paths[1].messages, 10u);
    EXPECT_THAT(explain.text(0), HasSubstr("get by the receiver"));
    EXPECT_THAT(explain.text(0), HasSubstr("put by the sender"));
}

TEST(Explain, TellsTheShareOfAnOpeningApart) {
    plan::Path path{.received = true,
                    .source = "device",
                    .sink = "device",
                    .smallest = 4 * kMiB,
                    .largest = 4 * kMiB,
                    .messages = 1,
                    .bytes = 4 * kMiB,
                    .protocol = "ipc",
                    .executor = "receiver",
                    .how = "ipc, get",
                    .expected = 114 * kMicrosecond,
                    .opening = 80 * kMicrosecond,
                    .why = "one copy",
                    .losers = {}};
    EXPECT_THAT(plan::path_table({path}, plan::Show::all),
                HasSubstr("114 us expected for 4 MiB (34 us to copy, 80 us as a share of opening"));
    auto read = plan::record_from_json(plan::to_json({.rank = 0, .paths = {path}, .notes = {}}));
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read->paths.front().opening, 80 * kMicrosecond);
    path.opening = 0;
    EXPECT_THAT(plan::path_table({path}, plan::Show::all), Not(HasSubstr("opening")));
}

TEST(Explain, ATableWithoutMessagesSaysSo) {
    EXPECT_EQ(plan::path_table({}, plan::Show::all), "  none: no message was sent\n");
    plan::Path of_its_sender;
    of_its_sender.received = false;
    EXPECT_EQ(plan::path_table({of_its_sender}, plan::Show::received),
              "  none: no message was sent\n");
}

TEST(Explain, SurvivesTheWayThroughJson) {
    plan::Explain explain(true);
    record(explain, 4 * kMiB, 1);
    record(explain, 100, 3, MemoryKind::host);
    explain.note("three messages went by pigeon");
    auto read = plan::record_from_json(explain.json(7));
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(plan::to_json(read.value()), explain.json(7));
    EXPECT_EQ("gantry explain: rank 7\n" + plan::path_table(read->paths, plan::Show::all) +
                  "  rank 7: three messages went by pigeon\n",
              explain.text(7));
}

plan::IoPath of_file(Bytes bytes, const char* way, const char* why) {
    return {.file = "field",
            .operation = "write_all",
            .ranks = 4,
            .memory = "device",
            .smallest = bytes,
            .largest = bytes,
            .calls = 1,
            .bytes = bytes,
            .way = way,
            .how = "pieces of " + std::to_string(bytes),
            .why = why};
}

TEST(Explain, CallsOfAFileWithOneStoryAreOneRow) {
    plan::Explain explain(true);
    explain.file(of_file(100, "two phases", "ranks interleave"));
    explain.file(of_file(300, "two phases", "ranks interleave"));
    explain.file(of_file(200, "two phases", "ranks interleave"));
    explain.file(of_file(200, "direct", "runs are large"));
    const std::string text = explain.text(1);
    EXPECT_THAT(text,
                HasSubstr("files (calls of all ranks):\n"
                          "  write_all  field  device memory  100 B to 300 B  3 calls  two phases\n"
                          "      how           pieces of 300\n"
                          "      why           ranks interleave\n"
                          "  write_all  field  device memory  200 B  1 calls  direct\n"));
    auto read = plan::record_from_json(explain.json(1));
    ASSERT_TRUE(read.ok()) << read.status().text();
    ASSERT_EQ(read->files.size(), 2u);
    EXPECT_EQ(read->files[0].bytes, 600u);
    EXPECT_EQ(plan::to_json(*read), explain.json(1));
    // Other ranks' rows join.
    std::vector<plan::IoPath> of_two = read->files;
    of_two.insert(of_two.end(), read->files.begin(), read->files.end());
    EXPECT_THAT(plan::io_table(of_two), HasSubstr("6 calls  two phases"));
}

TEST(Explain, RefusesWhatItDidNotWrite) {
    for (const char* text : {"", "{", "[]", "{\"paths\": 3}", "{\"paths\": [3]}"})
        EXPECT_FALSE(plan::record_from_json(text).ok()) << text;
}

TEST(Explain, WritesAFilePerRank) {
    plan::Explain explain(true);
    record(explain, kMiB, 1);
    const std::string base = testing::TempDir() + "paths-" + std::to_string(::getpid());
    ASSERT_TRUE(explain.write(5, base + "-%r.json").ok());
    std::ifstream file(base + "-5.json");
    std::stringstream contents;
    contents << file.rdbuf();
    EXPECT_EQ(contents.str(), explain.json(5));
    std::remove((base + "-5.json").c_str());
    EXPECT_THAT(std::string(explain.write(0, base + "/no/such/folder").text()),
                HasSubstr("GANTRY_EXPLAIN_FILE"));
}

TEST(PlanText, SpeaksOfSizesAndTimesAsPeopleDo) {
    EXPECT_EQ(plan::bytes_text(0), "0 B");
    EXPECT_EQ(plan::bytes_text(64 * kKiB), "64 KiB");
    EXPECT_EQ(plan::bytes_text(kMiB + kMiB / 2), "1.50 MiB");
    EXPECT_EQ(plan::time_text(999), "999 ns");
    EXPECT_EQ(plan::time_text(1446000), "1.45 ms");
    EXPECT_EQ(plan::time_text(128 * kMicrosecond), "128 us");
}

}  // namespace
}  // namespace gantry::test
