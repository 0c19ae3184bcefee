// SPDX-License-Identifier: BSD-3-Clause
//
// Which GPUs the ranks see, on machines that are only written down.
#include "tools/mpiexec/gpus.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <unistd.h>

#include <fstream>

namespace gantry::mpiexec {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Four GPUs: a and b near processors 0 to 3, c and d near 4 to 7.
std::vector<Gpu> four() {
    return {{"GPU-aa", "0000:01:00.0", {0, 1, 2, 3}},
            {"GPU-ab", "0000:02:00.0", {0, 1, 2, 3}},
            {"GPU-c", "0000:81:00.0", {4, 5, 6, 7}},
            {"GPU-d", "0000:82:00.0", {4, 5, 6, 7}}};
}

std::vector<std::string> sets(const GpuBinding& binding) {
    std::vector<std::string> found;
    for (const std::vector<Gpu>& rank : binding.ranks)
        found.push_back(uuids_of(rank));
    return found;
}

std::vector<std::string> closest(int per_rank, const std::vector<Processors>& processors,
                                 int ranks) {
    return sets(divide_gpus({per_rank, GpuBind::closest, {}}, four(), processors, ranks));
}

std::vector<std::string> seen(const char* value) {
    std::vector<std::string> found;
    for (const Gpu& gpu : visible_gpus(four(), value).gpus)
        found.push_back(gpu.uuid);
    return found;
}

TEST(Gpus, EachRankGetsOneNearItsProcessors) {
    EXPECT_THAT(closest(1, {{0, 1}, {4, 5}}, 2), ElementsAre("GPU-aa", "GPU-c"));
    EXPECT_THAT(closest(1, {{4}, {5}, {0}, {1}}, 4),
                ElementsAre("GPU-c", "GPU-d", "GPU-aa", "GPU-ab"));
}

TEST(Gpus, NobodyTakesTheNearOneOfARankBehindIt) {
    // Three ranks at processors 0 to 3: the third gets one from afar, which the fourth leaves.
    EXPECT_THAT(closest(1, {{0}, {1}, {2}, {4}}, 4),
                ElementsAre("GPU-aa", "GPU-ab", "GPU-d", "GPU-c"));
}

TEST(Gpus, RanksThatAreNotBoundGetThemInOrder) {
    EXPECT_THAT(closest(1, {}, 3), ElementsAre("GPU-aa", "GPU-ab", "GPU-c"));
    EXPECT_THAT(closest(2, {}, 2), ElementsAre("GPU-aa,GPU-ab", "GPU-c,GPU-d"));
}

TEST(Gpus, MoreRanksThanGpusShareThemEvenlyAndNear) {
    EXPECT_THAT(
        closest(1, {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}}, 8),
        ElementsAre("GPU-aa", "GPU-ab", "GPU-aa", "GPU-ab", "GPU-c", "GPU-d", "GPU-c", "GPU-d"));
}

TEST(Gpus, OnesThatAreNamedGoRoundTheRanks) {
    EXPECT_THAT(sets(divide_gpus({0, GpuBind::listed, {3, 1}}, four(), {}, 3)),
                ElementsAre("GPU-d", "GPU-ab", "GPU-d"));
    EXPECT_THAT(sets(divide_gpus({2, GpuBind::listed, {0, 1, 2, 3}}, four(), {}, 2)),
                ElementsAre("GPU-aa,GPU-ab", "GPU-c,GPU-d"));
    EXPECT_THAT(divide_gpus({0, GpuBind::listed, {4}}, four(), {}, 1).mistake,
                HasSubstr("there is no GPU 4; this job may use 4 GPUs"));
}

TEST(Gpus, WhatCannotBeHadIsSaid) {
    EXPECT_THAT(divide_gpus({5, {}, {}}, four(), {}, 1).mistake,
                HasSubstr("--gpus-per-rank 5: this job may use 4 GPUs"));
    EXPECT_THAT(divide_gpus({1, {}, {}}, {}, {}, 1).mistake, HasSubstr("no GPU is seen here"));
}

TEST(Gpus, TheCallersOwnChoiceIsKept) {
    EXPECT_THAT(seen(nullptr), ElementsAre("GPU-aa", "GPU-ab", "GPU-c", "GPU-d"));
    EXPECT_THAT(seen("2, 0"), ElementsAre("GPU-c", "GPU-aa"));
    EXPECT_THAT(seen("GPU-d,GPU-ab"), ElementsAre("GPU-d", "GPU-ab"));
    EXPECT_THAT(seen(""), IsEmpty());
    // As the driver has it: what stands before the first that is unknown.
    EXPECT_THAT(seen("1,9,2"), ElementsAre("GPU-ab"));
    EXPECT_THAT(visible_gpus(four(), "MIG-1").mistake, HasSubstr("parts of a GPU (MIG)"));
}

TEST(Gpus, WordsOfTheOptionAreUnderstood) {
    EXPECT_EQ(gpu_bind("closest")->bind, GpuBind::closest);
    EXPECT_EQ(gpu_bind("none")->bind, GpuBind::none);
    EXPECT_THAT(gpu_bind("1,0")->listed, ElementsAre(1, 0));
    for (const char* text : {"", "near", "1,x", "-1"})
        EXPECT_FALSE(gpu_bind(text).has_value()) << text;
}

class GpuFolders : public testing::Test {
  protected:
    ~GpuFolders() override { std::filesystem::remove_all(root_); }
    void write(const std::string& path, const std::string& text) {
        std::filesystem::create_directories((root_ / path).parent_path());
        std::ofstream(root_ / path) << text << '\n';
    }
    std::filesystem::path root_ =
        std::filesystem::path(testing::TempDir()) / fmt::format("gantry-gpus-{}", getpid());
};

TEST_F(GpuFolders, TheDriversFolderNamesThemAndTheKernelsTheirProcessors) {
    for (const auto& [bus, uuid, processors] :
         {std::tuple{"0000:81:00.0", "GPU-2", "4-7"}, {"0000:01:00.0", "GPU-1", "0-3"}}) {
        write(
            fmt::format("proc/driver/nvidia/gpus/{}/information", bus),
            fmt::format("Model: \t\t Some GPU\nIRQ:   \t\t 16\nGPU UUID: \t {}\nBus Type: \t PCIe",
                        uuid));
        write(fmt::format("sys/bus/pci/devices/{}/local_cpulist", bus), processors);
    }
    const std::vector<Gpu> gpus = read_gpus(root_);
    ASSERT_EQ(gpus.size(), 2u);
    EXPECT_EQ(gpus[0].uuid, "GPU-1");
    EXPECT_EQ(gpus[0].bus_id, "0000:01:00.0");
    EXPECT_THAT(gpus[0].near, ElementsAre(0, 1, 2, 3));
    EXPECT_EQ(gpus[1].uuid, "GPU-2");
}

TEST_F(GpuFolders, WithoutThemThereIsNone) {
    EXPECT_THAT(read_gpus(root_), IsEmpty());
}

}  // namespace
}  // namespace gantry::mpiexec
