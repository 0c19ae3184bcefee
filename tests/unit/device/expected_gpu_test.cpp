// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/expected_gpu.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace gantry::device::cuda {
namespace {

namespace fs = std::filesystem;

class ExpectedGpu : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_NE(mkdtemp(proc.data()), nullptr);
        add("0000:86:00.0", "GPU-bbbb-2");
        add("0000:18:00.0", "GPU-aaaa-1");
    }
    void TearDown() override { fs::remove_all(proc); }
    void add(const char* address, const char* uuid) {
        const fs::path folder = fs::path(proc) / "driver/nvidia/gpus" / address;
        fs::create_directories(folder);
        std::ofstream(folder / "information") << "Model: \t\t NVIDIA\nIRQ:   \t\t 9\nGPU UUID: \t "
                                              << uuid << "\nDevice Minor: \t 0\n";
    }
    std::string expected(std::optional<std::string> visible, int local_rank,
                         Numbers numbers = Numbers::of_the_machine) {
        return expected_gpu(proc, visible, numbers, local_rank);
    }
    std::string proc = (fs::temp_directory_path() / "gantry-proc-XXXXXX").string();
};

TEST_F(ExpectedGpu, RanksTakeTheGpusInTurn) {
    EXPECT_EQ(gpus_of_machine(proc), (std::vector<std::string>{"0000:18:00.0", "0000:86:00.0"}));
    EXPECT_EQ(expected({}, 0), "0000:18:00.0");
    EXPECT_EQ(expected({}, 1), "0000:86:00.0");
    EXPECT_EQ(expected({}, 2), "0000:18:00.0");
}

TEST_F(ExpectedGpu, TheVisibleOnesAreNumbersOrUuids) {
    EXPECT_EQ(expected("1", 0), "0000:86:00.0");
    EXPECT_EQ(expected("1,0", 1), "0000:18:00.0");
    EXPECT_EQ(expected("GPU-bbbb-2", 0), "0000:86:00.0");
    EXPECT_EQ(expected("GPU-bb,0", 0), "0000:86:00.0") << "the driver takes the beginning of one";
    EXPECT_EQ(expected("1,7,0", 1), "0000:86:00.0") << "the list ends at what is no GPU";
}

TEST_F(ExpectedGpu, NobodyKnowsWhereNoneIsVisible) {
    EXPECT_EQ(expected("", 0), "");
    EXPECT_EQ(expected("-1", 0), "");
    EXPECT_EQ(expected("MIG-cccc", 0), "");
    EXPECT_EQ(expected_gpu("/nowhere", {}, Numbers::of_the_machine, 0), "");
}

TEST_F(ExpectedGpu, NumbersOfWhatWasLeftToATaskNameNoGpu) {
    EXPECT_EQ(expected("0", 0, Numbers::of_what_is_left), "");
    EXPECT_EQ(expected("GPU-bbbb", 0, Numbers::of_what_is_left), "0000:86:00.0");
}

}  // namespace
}  // namespace gantry::device::cuda
