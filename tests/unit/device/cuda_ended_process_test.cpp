// SPDX-License-Identifier: BSD-3-Clause
//
// Mappings of memory whose owner has ended.
#include "cuda_fixture.hpp"
#include "device/cuda/ipc_cache.hpp"
#include "exporter.hpp"

#include <algorithm>

namespace gantry::device {
namespace {

using testing_support::CudaTest;
using testing_support::Exporter;
using testing_support::GpuProgram;
using testing_support::pointer;

std::vector<int> asked;
int ended = 0;

bool says_it_has_ended(int process) {
    asked.push_back(process);
    return process == ended;
}

// To ask the system costs some calls, for a process with a hundred mappings as for one with one.
TEST_F(CudaTest, AProcessIsAskedForOnceHoweverMuchOfItIsMapped) {
    const CUdeviceptr probe = allocate(64);
    const bool possible = classify(pointer(probe), 64).ipc == IpcKind::legacy;
    gpu.cuMemFree_v2(probe);
    if (!possible) GTEST_SKIP() << "this GPU's memory cannot be opened by other processes";
    Exporter gone, living;
    std::uint64_t losses = 0;
    cuda::Driver driver(GpuProgram::library());
    ASSERT_TRUE(driver.ready());
    cuda::IpcCache cache(driver, 16, Bytes{1} << 30, losses);
    const cuda::Context context{primary, 0, 0};
    constexpr Bytes kOwnBlock = 4 << 20;
    const auto map_three = [&](Exporter& owner) {
        IpcHandle handle;
        for (int i = 0; i < 3; ++i) {
            handle = owner.allocate(kOwnBlock, 1);
            EXPECT_TRUE(cache.open(handle, context, {}).ok());
            cache.close(handle, 0);
        }
        return static_cast<int>(handle.origin >> 32);
    };
    ended = map_three(gone);
    const int other = map_three(living);
    ASSERT_EQ(cache.entries(), 6u);
    asked.clear();
    cache.forget_ended_processes(&says_it_has_ended);
    std::sort(asked.begin(), asked.end());
    EXPECT_EQ(asked, (std::vector<int>{std::min(ended, other), std::max(ended, other)}));
    EXPECT_EQ(cache.entries(), 3u);
    cache.clear();
}

}  // namespace
}  // namespace gantry::device
