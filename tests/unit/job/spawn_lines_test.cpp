// SPDX-License-Identifier: BSD-3-Clause
#include "job/spawn_lines.hpp"

#include <gtest/gtest.h>

namespace gantry::job {
namespace {

std::optional<SpawnRequest> take_all(SpawnLines& lines, std::initializer_list<const char*> text) {
    std::optional<SpawnRequest> whole;
    for (const char* line : text)
        whole = lines.take(line);
    return whole;
}

TEST(SpawnLines, AValueIsTheRestOfItsLine) {
    SpawnLines lines;
    lines.begin();
    const auto request = take_all(
        lines, {"nprocs=3", "execname=a program", "totspawns=1", "spawnssofar=1", "arg1=x=1 y=2",
                "arg2=", "argcnt=2", "preput_num=1", "preput_key_0=k", "preput_val_0=v",
                "info_num=1", "info_key_0=wdir", "info_val_0=/a b", "endcmd"});
    ASSERT_TRUE(request.has_value());
    EXPECT_FALSE(lines.open());
    ASSERT_EQ(request->programs.size(), 1u);
    EXPECT_EQ(request->programs[0].ranks, 3);
    EXPECT_EQ(request->programs[0].command, (std::vector<std::string>{"a program", "x=1 y=2", ""}));
    ASSERT_EQ(request->programs[0].info.size(), 1u);
    EXPECT_EQ(request->programs[0].info[0].second, "/a b");
    ASSERT_EQ(request->preput.size(), 1u);
    EXPECT_EQ(request->preput[0].first, "k");
}

TEST(SpawnLines, SeveralProgramsAreOneRequest) {
    SpawnLines lines;
    lines.begin();
    EXPECT_FALSE(
        take_all(lines, {"nprocs=1", "execname=a", "totspawns=2", "spawnssofar=1", "endcmd"}));
    lines.begin();
    const auto request =
        take_all(lines, {"nprocs=2", "execname=b", "totspawns=2", "spawnssofar=2", "endcmd"});
    ASSERT_TRUE(request.has_value());
    ASSERT_EQ(request->programs.size(), 2u);
    EXPECT_EQ(request->programs[1].command.front(), "b");
}

TEST(SpawnLines, CountsThatAreTooLargeCostNothing) {
    SpawnLines lines;
    lines.begin();
    const auto request = take_all(lines, {"execname=a", "argcnt=2000000000", "info_num=2000000000",
                                          "preput_num=2000000000", "totspawns=1", "endcmd"});
    ASSERT_TRUE(request.has_value());
    EXPECT_LE(request->programs[0].command.size(), 8u);
}

}  // namespace
}  // namespace gantry::job
