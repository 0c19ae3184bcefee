// SPDX-License-Identifier: BSD-3-Clause
//
// Kernels, compiled and as text: which of both is loaded, and when.
#include "device/cuda/kernel_module.hpp"

#include "cuda_resident_fixture.hpp"

#include <array>

namespace gantry::device {
namespace {

using cuda::KernelModule;
using kernels::Compiled;
using kernels::Image;
using testing_support::GpuProgram;

constexpr std::array<char, 64> kNoCode = {'\x7f', 'E', 'L', 'F'};

TEST(KernelImage, CodeIsThatOfTheSameMajorArchitectureAndNoLaterMinorOne) {
    const std::array<char, 4> code{};
    const std::array<Compiled, 4> compiled = {Compiled{7, 5, &code[0]}, Compiled{8, 0, &code[1]},
                                              Compiled{8, 6, &code[2]}, Compiled{9, 0, &code[3]}};
    const Image image{"", compiled};
    EXPECT_EQ(image.compiled_for(7, 0), nullptr);
    EXPECT_EQ(image.compiled_for(7, 5), &code[0]);
    EXPECT_EQ(image.compiled_for(8, 0), &code[1]);
    EXPECT_EQ(image.compiled_for(8, 9), &code[2]);
    EXPECT_EQ(image.compiled_for(9, 0), &code[3]);
    EXPECT_EQ(image.compiled_for(10, 0), nullptr);
}

struct CudaKernelModule : CudaResident {
    std::uint64_t made(const char* symbol) const { return gpu.simgpu_calls(symbol); }
    // What takes the driver long, or waits for it.
    std::uint64_t set_up() const {
        return made("cuModuleLoadData") + made("cuMemHostRegister_v2") + made("cuMemHostAlloc") +
               made("cuMemAlloc_v2");
    }
};

TEST_F(CudaKernelModule, CodeThatTheDriverRefusesIsCompiledFromTheText) {
    cuda::Driver driver(GpuProgram::library());
    ASSERT_TRUE(driver.ready());
    KernelModule module(driver, true);
    CUfunction copy = nullptr;
    std::array<Compiled, 8> refused{};
    for (int major = 5; major < 13; ++major)
        refused[static_cast<std::size_t>(major) - 5] = {major, 0, kNoCode.data()};
    const Image image{kernels::copy_many().ptx, refused};
    EXPECT_TRUE(module.is_compiled(image));
    EXPECT_TRUE(module.load(image, {{"gantry_copy_many", &copy}}, 0));
    EXPECT_NE(copy, nullptr);
    module.close();
}

TEST_F(CudaKernelModule, WhatAPersistentKernelNeedsIsThereBeforeItIsLaunched) {
    if (!gpu.simulated()) GTEST_SKIP() << "a real driver counts no calls";
    start(kLong);
    ASSERT_TRUE(copy(order(0, 8)).ok());
    const std::uint64_t before = set_up();
    ASSERT_TRUE(copy_until_one_stays());
    EXPECT_EQ(set_up(), before);
}

TEST_F(CudaKernelModule, EveryKernelIsLoadedWithTheFirstCopyWhereCodeIsCompiled) {
    if (!gpu.simulated()) GTEST_SKIP() << "a real driver counts no calls";
    start(kLong);
    ASSERT_TRUE(copy(order(0, 8)).ok());
    const std::uint64_t loaded = made("cuModuleLoadData");
    if (kernels::copy_many().compiled_for(9, 0) == nullptr) {
        EXPECT_EQ(loaded, 2u) << "those of small copies; the driver compiles others when needed";
        return;
    }
    Completion done(executor);
    Reduce sum;
    sum.operation = layout::Operation::sum;
    sum.element = layout::Element::int32;
    sum.count = 1000;
    const void* const sources[] = {testing_support::pointer(from), testing_support::pointer(to)};
    sum.sources = sources;
    sum.destination = testing_support::pointer(to);
    cuda->reduce(sum, done);
    finish(done);
    EXPECT_TRUE(done.status().ok()) << done.status().text();
    EXPECT_EQ(made("cuModuleLoadData"), loaded);
}

}  // namespace
}  // namespace gantry::device
