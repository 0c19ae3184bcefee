// SPDX-License-Identifier: BSD-3-Clause
//
// The command that a mistake names shows the same job again: every option that a job was given is
// in it, and no other.
#include "bench/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace gantry::bench {
namespace {

Options parsed(const std::string& line) {
    std::istringstream text(line);
    std::vector<std::string> words;
    for (std::string word; text >> word;)
        words.push_back(word);
    std::vector<char*> pointers;
    for (std::string& word : words)
        pointers.push_back(word.data());
    return parse(static_cast<int>(pointers.size()), pointers.data(), true);
}

std::string command(const std::string& line, Bytes bytes = 8) {
    return command_for(parsed("gantry-bench " + line), bytes);
}

struct Given {
    const char* line;
    const char* command;  // behind "mpiexec -n "
};

class Command : public testing::TestWithParam<Given> {};

TEST_P(Command, HoldsAllThatAJobWasGiven) {
    const std::string expected = std::string("mpiexec -n ") + GetParam().command;
    EXPECT_EQ(command(GetParam().line), expected);
}

TEST_P(Command, GivesItselfAgain) {
    const std::string once = command(GetParam().line);
    const std::string again = once.substr(once.find("gantry-bench ") + 13);
    EXPECT_EQ(command(again), once);
}

INSTANTIATE_TEST_SUITE_P(
    OfEachOption, Command,
    testing::Values(
        Given{"latency", "2 gantry-bench latency D D -m 8"},
        Given{"latency d p", "2 gantry-bench latency D P -m 8"},
        Given{"sendrecv D H", "2 gantry-bench sendrecv D H -m 8"},
        Given{"latency M H -m 1:4M", "2 gantry-bench latency M H -m 8"},
        Given{"latency P P --pageable", "2 gantry-bench latency H H -m 8"},
        Given{"latency -i 7", "2 gantry-bench latency D D -m 8 -i 7"},
        Given{"bw -w 5", "2 gantry-bench bw D D -m 8 -w 5"},
        Given{"bw -m 8 --layout 4:16", "2 gantry-bench bw D D -m 8 --layout 4:16"},
        Given{"bibw --gpus 1,0", "2 gantry-bench bibw D D -m 8 --gpus 1,0"},
        Given{"latency --baseline staged", "2 gantry-bench latency D D -m 8 --baseline staged"},
        Given{"latency --baseline user-pipelined",
              "2 gantry-bench latency D D -m 8 --baseline user-pipelined"},
        Given{"latency --baseline all", "2 gantry-bench latency D D -m 8 --baseline all"},
        Given{"latency --baseline none", "2 gantry-bench latency D D -m 8"},
        Given{"latency --no-library",
              "2 gantry-bench latency D D -m 8 --baseline all --no-library"},
        Given{"latency --no-validation", "2 gantry-bench latency D D -m 8 --no-validation"},
        Given{"latency --floor", "2 gantry-bench latency D D -m 8 --floor"},
        Given{"latency --busy", "2 gantry-bench latency D D -m 8 --busy"},
        Given{"latency --json", "2 gantry-bench latency D D -m 8 --json"},
        Given{"mr --pairs 3", "6 gantry-bench mr D D -m 8 --pairs 3"},
        Given{"overlap --compute 2.5", "2 gantry-bench overlap D D -m 8 --compute 2.5"},
        Given{"fresh -n 12", "2 gantry-bench fresh D D -m 8 -n 12"},
        Given{"fresh --uses 4", "2 gantry-bench fresh D D -m 8 --uses 4"},
        Given{"put", "2 gantry-bench put D D -m 8"},
        Given{"get D H --measure rate -w 9 --sync pscw",
              "2 gantry-bench get D H -m 8 -w 9 --measure rate --sync pscw"},
        Given{"accumulate H H --window allocate --measure bibw",
              "2 gantry-bench accumulate H H -m 8 --measure bibw"},
        Given{"cas H H --window shared --floor",
              "2 gantry-bench cas H H -m 8 --window shared --floor"},
        Given{"demo", "2 gantry-bench demo"},
        Given{"demo --gpus 0,0", "2 gantry-bench demo --gpus 0,0"},
        // A job of a comparison is started by hand like any other.
        Given{"latency --peers DIR --rounds 5 --patience 9", "2 gantry-bench latency D D -m 8"},
        Given{"mr P D -w 3 -i 2 --floor --busy --pairs 2 --gpus 0,1",
              "4 gantry-bench mr P D -m 8 -i 2 -w 3 --gpus 0,1 --busy --floor --pairs 2"}));

TEST(ArgumentsOfARun, AreThoseOfTheComparisonWithItsSizesAsJson) {
    const Options options =
        parsed("gantry-bench fresh H D -m 8,64 -n 3 --uses 2 --rounds 4 --peers DIR");
    EXPECT_THAT(
        arguments_of_a_run(options),
        testing::ElementsAre("fresh", "H", "D", "-m", "8,64", "-n", "3", "--uses", "2", "--json"));
}

TEST(Pageable, TurnsPageLockedHostBuffersIntoPageableOnesAndNoOthers) {
    const Options options = parsed("gantry-bench latency D P --pageable");
    EXPECT_EQ(options.placement[0], Placement::device);
    EXPECT_EQ(options.placement[1], Placement::host);
}

TEST(Sizes, OfEachBenchmarkByDefault) {
    EXPECT_THAT(parsed("gantry-bench fresh").sizes,
                testing::ElementsAre(8, kKiB, 16 * kKiB, 64 * kKiB, 256 * kKiB, kMiB));
    EXPECT_EQ(parsed("gantry-bench overlap").sizes.front(), 64 * kKiB);
    EXPECT_EQ(parsed("gantry-bench mr").sizes.back(), 64 * kKiB);
    EXPECT_EQ(parsed("gantry-bench latency").sizes.back(), 4 * kMiB);
    EXPECT_EQ(parsed("gantry-bench accumulate").sizes.front(), kItemBytes);
    EXPECT_THAT(parsed("gantry-bench fetch_op").sizes, testing::ElementsAre(kItemBytes));
}

TEST(Sizes, OfRowsBeginWithOneRow) {
    EXPECT_EQ(parsed("gantry-bench latency --layout 512:4K").sizes.front(), 512);
}

TEST(WindowOfOneSidedOperations, IsOfMpisMemoryWhereTheTargetIsInHostMemory) {
    EXPECT_EQ(parsed("gantry-bench put D H").window_kind, WindowKind::allocate);
    EXPECT_EQ(parsed("gantry-bench put H D").window_kind, WindowKind::create);
    EXPECT_EQ(parsed("gantry-bench put D H --measure bibw").window_kind, WindowKind::create);
}

}  // namespace
}  // namespace gantry::bench
