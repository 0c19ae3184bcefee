// SPDX-License-Identifier: BSD-3-Clause
#include "model/estimate.hpp"

#include "model/tuned.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace gantry::model {
namespace {

using testing::HasSubstr;

Traits h200() {
    Traits traits;
    traits.name = "NVIDIA H200";
    traits.compute_major = 9;
    traits.memory = Bytes{150754820096};
    traits.memory_bytes_per_second = 4.92e12;
    traits.host_link_bytes_per_second = 63e9;
    traits.gpus = 8;
    return traits;
}

Traits a100() {
    Traits traits = h200();
    traits.name = "NVIDIA A100-SXM4-80GB";
    traits.compute_major = 8;
    traits.memory_bytes_per_second = 2.04e12;
    traits.host_link_bytes_per_second = 31.5e9;
    return traits;
}

TEST(Estimate, OfAnH200IsWhatWasMeasuredOfIt) {
    const Machine measured = load("h200").value(), estimated = estimate(h200());
    EXPECT_EQ(estimated.gpu, measured.gpu);
    EXPECT_EQ(estimated.gpu_under_mps, measured.gpu_under_mps);
    EXPECT_EQ(estimated.gpus_per_node, measured.gpus_per_node);
    EXPECT_EQ(estimated.peer_access, measured.peer_access);
}

TEST(Estimate, RatesFollowTheLinksAndCostsOfCallsStay) {
    const Machine measured = load("h200").value(), estimated = estimate(a100());
    EXPECT_NEAR(estimated.gpu.d2h.rate.peak(), measured.gpu.d2h.rate.peak() / 2, 1e6);
    EXPECT_NEAR(estimated.gpu.h2d.rate.peak(), measured.gpu.h2d.rate.peak() / 2, 1e6);
    EXPECT_NEAR(estimated.gpu.peer.rate.peak(), measured.gpu.peer.rate.peak() * 2 / 3, 1e6);
    EXPECT_NEAR(estimated.gpu.d2d.rate.peak(), measured.gpu.d2d.rate.peak() * 2.04 / 4.92, 1e6);
    EXPECT_EQ(estimated.gpu.calls, measured.gpu.calls);
    EXPECT_EQ(estimated.gpu.turn, measured.gpu.turn);
    EXPECT_EQ(estimated.gpu_under_mps.turn, 0);
    EXPECT_EQ(estimated.gpu.kernel, measured.gpu.kernel);
    EXPECT_EQ(estimated.name, "nvidia-a100-sxm4-80gb");
    EXPECT_THAT(estimated.about, HasSubstr("not measured"));
}

TEST(Estimate, WithoutNvlinkAnotherGpuIsAsFarAsTheHostAndSlowerToRead) {
    Traits traits = a100();
    traits.name = "NVIDIA A100-PCIE-40GB";
    traits.peer_atomics = false;
    const Gpu gpu = estimate(traits).gpu;
    EXPECT_EQ(gpu.peer.rate.peak(), gpu.h2d.rate.peak());
    EXPECT_LT(gpu.peer_get.rate.peak(), 0.9 * gpu.peer.rate.peak());
}

TEST(Estimate, ALinkThatIsNotToldIsThatOfTheGeneration) {
    Traits newer = a100(), older = a100();
    newer.host_link_bytes_per_second = older.host_link_bytes_per_second = 0;
    older.compute_major = 7;
    EXPECT_EQ(estimate(newer).gpu.d2h.rate, estimate(a100()).gpu.d2h.rate);
    EXPECT_NEAR(estimate(older).gpu.d2h.rate.peak(), estimate(newer).gpu.d2h.rate.peak() / 2, 1e6);
}

TEST(Estimate, NoKernelStaysOnGpusThatAreOlderThanTheirMemoryModel) {
    Traits traits = a100();
    traits.compute_major = 6;
    const Machine machine = estimate(traits);
    for (const Gpu& gpu : {machine.gpu, machine.gpu_under_mps}) {
        EXPECT_EQ(gpu.kernel.resident, 0);
        EXPECT_EQ(gpu.kernel.resident_out, 0);
        EXPECT_EQ(gpu.kernel.resident_in, 0);
    }
}

TEST(Estimate, GpusWithoutPeersAreDescribedSo) {
    Traits traits = a100();
    traits.peer_access = traits.peer_atomics = false;
    EXPECT_FALSE(estimate(traits).peer_access);
}

// Which description holds, best first.
class Describe : public testing::Test {
  protected:
    void SetUp() override {
        // Tests run side by side, each in a process of its own.
        folder = std::filesystem::temp_directory_path() /
                 ("gantry-describe-" + std::to_string(::getpid()));
        ::setenv("XDG_CONFIG_HOME", folder.c_str(), 1);
    }
    void TearDown() override {
        ::unsetenv("XDG_CONFIG_HOME");
        std::filesystem::remove_all(folder);
    }
    std::string tune(const Traits& traits, const std::string& text) {
        const std::string file = tuned_file(traits.name);
        std::filesystem::create_directories(std::filesystem::path(file).parent_path());
        std::ofstream(file) << text;
        return file;
    }
    std::filesystem::path folder;
};

TEST_F(Describe, HowManyCopyEnginesThereAreTheDriverSaysUnlessAMachineWasAskedFor) {
    Traits one = h200();
    one.copy_engines = 1;
    for (const char* name : {"NVIDIA H200 MIG 1g.18gb", "NVIDIA A100-SXM4-80GB"}) {
        one.name = name;
        const Machine machine = describe("", one).machine;
        EXPECT_EQ(machine.gpu.copy_engines, 1) << name;
        EXPECT_EQ(machine.gpu_under_mps.copy_engines, 1) << name;
    }
    EXPECT_EQ(describe("h200", one).machine.gpu.copy_engines, 3);
    one.copy_engines = 0;  // not told
    one.name = "NVIDIA H200";
    EXPECT_EQ(describe("", one).machine.gpu.copy_engines, 3);
}

TEST_F(Describe, AGpuThatNobodyMeasuredIsEstimated) {
    const Description description = describe("", a100());
    EXPECT_EQ(description.origin, Origin::estimated);
    EXPECT_EQ(description.machine, estimate(a100()));
    EXPECT_TRUE(description.problem.ok());
    EXPECT_THAT(origin_text(description), HasSubstr("estimated"));
}

TEST_F(Describe, ABuiltInDescriptionGoesBeforeAnEstimate) {
    const Description description = describe("", h200());
    EXPECT_EQ(description.origin, Origin::built_in);
    EXPECT_EQ(description.machine, load("h200").value());
    EXPECT_EQ(origin_text(description), "built in (h200)");
}

TEST_F(Describe, WhatWasTunedGoesBeforeThatAndWhatIsAskedForBeforeAll) {
    const std::string file = tune(h200(), R"({"name": "mine"})");
    const Description tuned = describe("", h200()), asked = describe("c2050-qdr", h200());
    EXPECT_EQ(tuned.origin, Origin::measured);
    EXPECT_EQ(tuned.machine.name, "mine");
    EXPECT_THAT(origin_text(tuned), HasSubstr(file));
    EXPECT_EQ(asked.origin, Origin::asked_for);
    EXPECT_EQ(asked.machine, load("c2050-qdr").value());
}

TEST_F(Describe, WhatCannotBeReadIsToldAndTheNextBestHolds) {
    tune(a100(), "{");
    const Description tuned = describe("", a100()), asked = describe("nowhere", h200());
    EXPECT_EQ(tuned.origin, Origin::estimated);
    EXPECT_THAT(std::string(tuned.problem.text()), HasSubstr("is not JSON"));
    EXPECT_EQ(asked.origin, Origin::built_in);
    EXPECT_THAT(std::string(asked.problem.text()), HasSubstr("nowhere"));
}

}  // namespace
}  // namespace gantry::model
