// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/gpu_traits.hpp"

#include "gpu_program.hpp"

#include <gtest/gtest.h>

namespace gantry::device {
namespace {

TEST(PciLink, RateIsSpeedTimesWidthWithoutTheCodesBits) {
    EXPECT_NEAR(cuda::link_bytes_per_second("32.0 GT/s PCIe\n", "16\n"), 63.0e9, 0.1e9);
    EXPECT_NEAR(cuda::link_bytes_per_second("16.0 GT/s PCIe\n", "8\n"), 15.75e9, 0.1e9);
    EXPECT_NEAR(cuda::link_bytes_per_second("5.0 GT/s PCIe\n", "16\n"), 8.0e9, 0.1e9);
}

TEST(PciLink, WhatTheSystemDoesNotKnowIsNotTold) {
    EXPECT_EQ(cuda::link_bytes_per_second("Unknown\n", "16\n"), 0);
    EXPECT_EQ(cuda::link_bytes_per_second("32.0 GT/s PCIe\n", ""), 0);
    EXPECT_EQ(cuda::link_of_pci_device("ffff:ff:1f.7"), 0);
}

using testing_support::GpuProgram;

class GpuTraits : public testing::Test {
  protected:
    void SetUp() override {
        if (GpuProgram::library().empty()) GTEST_SKIP() << "no driver to test with";
        ASSERT_TRUE(gpu.load());
        ASSERT_EQ(gpu.cuInit(0), CUDA_SUCCESS);
        const auto call = [](auto function, auto... arguments) { return function(arguments...); };
        traits = cuda::traits_of(gpu, call, 0);
        cuda::read_memory_rate(gpu, call, 0, traits);
    }
    GpuProgram gpu;
    model::Traits traits;
};

TEST_F(GpuTraits, AreWhatTheDriverSays) {
    std::size_t memory = 0;
    ASSERT_EQ(gpu.cuDeviceTotalMem_v2(&memory, 0), CUDA_SUCCESS);
    EXPECT_EQ(traits.memory, memory);
    EXPECT_FALSE(traits.name.empty());
    EXPECT_GE(traits.compute_major, 2);
    EXPECT_GE(traits.gpus, 1);
}

// A copy inside a GPU moves its bytes at less than half of the memory's raw rate: they are read and
// written.
TEST_F(GpuTraits, MemoryIsAsFastAsItsClockAndWidthSay) {
    EXPECT_GT(traits.memory_bytes_per_second, 5e10);
    EXPECT_LT(traits.memory_bytes_per_second, 1e14);
}

}  // namespace
}  // namespace gantry::device
