// SPDX-License-Identifier: BSD-3-Clause
//
// Contexts that come and go under Gantry, and what it leaves behind.
#include "cuda_fixture.hpp"

#include "device/cuda/context.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gantry::device {
namespace {

using testing_support::CudaTest;
using testing_support::GpuProgram;
using testing_support::pointer;

struct CudaContexts : CudaTest {
    std::uint8_t host[256] = {};
};

TEST_F(CudaContexts, ACopyInFlightEndsWithAnErrorWhenItsContextIsDestroyed) {
    CUcontext own = nullptr;
    ASSERT_EQ(gpu.cuCtxCreate_v2(&own, 0, 0), CUDA_SUCCESS);
    const CUdeviceptr memory = allocate(4096);
    classify(pointer(memory), 4096);
    Completion done(executor);
    cuda->copy({host, pointer(memory), 256, 0, Engine::d2h}, done);
    EXPECT_FALSE(done.done()) << "copies are completed by progress() only";
    ASSERT_EQ(gpu.cuCtxDestroy_v2(own), CUDA_SUCCESS);
    cuda->progress();
    ASSERT_TRUE(done.done());
    EXPECT_EQ(done.status().error_class(), MPI_ERR_OTHER);
    EXPECT_NE(done.status().text().find("context was destroyed"), std::string_view::npos)
        << done.status().text();
    EXPECT_FALSE(cuda->pending());
}

TEST_F(CudaContexts, TheGpuOfARankIsThatOfItsContextElseItsTurn) {
    int count = 0;
    ASSERT_EQ(gpu.cuDeviceGetCount(&count), CUDA_SUCCESS);
    const auto address = [this](CUdevice device) {
        char text[32] = {};
        EXPECT_EQ(gpu.cuDeviceGetPCIBusId(text, sizeof text, device), CUDA_SUCCESS);
        return std::string(text);
    };
    const RankGpu used = cuda->gpu_of_rank(1);  // the fixture works on GPU 0
    EXPECT_EQ(used.pci_address, address(0));
    EXPECT_TRUE(used.in_use);
    ASSERT_EQ(gpu.cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
    for (int rank = 0; rank < 2 * count; ++rank) {
        const RankGpu expected = cuda->gpu_of_rank(rank);
        EXPECT_EQ(expected.pci_address, address(rank % count));
        EXPECT_EQ(expected.in_use, count == 1);
    }
}

TEST_F(CudaContexts, AfterAResetTheSameHandleGetsNewStreams) {
    CUdeviceptr memory = allocate(4096);
    classify(pointer(memory), 4096);
    ASSERT_TRUE(copy({host, pointer(memory), 256, 0, Engine::d2h}).ok());
    ASSERT_EQ(gpu.cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
    CUcontext again = nullptr;
    ASSERT_EQ(gpu.cuDevicePrimaryCtxRetain(&again, 0), CUDA_SUCCESS);
    ASSERT_EQ(gpu.cuCtxSetCurrent(again), CUDA_SUCCESS);
    memory = allocate(4096);
    const auto data = pattern(256, 5);
    write(memory, data);
    classify(pointer(memory), 4096);
    const Status status = copy({host, pointer(memory), 256, 0, Engine::d2h});
    ASSERT_TRUE(status.ok()) << status.text();
    EXPECT_EQ(std::memcmp(host, data.data(), 256), 0);
    gpu.cuMemFree_v2(memory);
    gpu.cuDevicePrimaryCtxRelease_v2(0);
}

TEST_F(CudaContexts, ShuttingDownAfterTheProgramDestroyedItsContextIsQuiet) {
    CUcontext own = nullptr;
    ASSERT_EQ(gpu.cuCtxCreate_v2(&own, 0, 0), CUDA_SUCCESS);
    const CUdeviceptr memory = allocate(4096);
    classify(pointer(memory), 4096);
    ASSERT_TRUE(copy({host, pointer(memory), 256, 0, Engine::d2h}).ok());
    ASSERT_EQ(gpu.cuCtxDestroy_v2(own), CUDA_SUCCESS);
    cuda->shut_down();
    cuda->shut_down();
}

TEST_F(CudaContexts, WorkIsDoneInThePointersOwnContext) {
    CUcontext own = nullptr;
    ASSERT_EQ(gpu.cuCtxCreate_v2(&own, 0, 0), CUDA_SUCCESS);
    const CUdeviceptr memory = allocate(4096);
    ASSERT_EQ(gpu.cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
    classify(pointer(memory), 4096);
    const std::uint64_t retains =
        gpu.simulated() ? gpu.simgpu_calls("cuDevicePrimaryCtxRetain") : 0;
    EXPECT_TRUE(copy({host, pointer(memory), 256, 0, Engine::d2h}).ok());
    if (gpu.simulated()) {
        EXPECT_EQ(gpu.simgpu_calls("cuDevicePrimaryCtxRetain"), retains);
    }
    cuda->shut_down();
    gpu.cuCtxDestroy_v2(own);
}

TEST_F(CudaContexts, WhoGotReadyForACopyHasItsContext) {
    const CUdeviceptr from = allocate(kMiB), to = allocate(kMiB);
    const auto data = pattern(kMiB, 3);
    write(from, data);
    for (const CUdeviceptr memory : {from, to})
        classify(pointer(memory), kMiB);
    const Copy order{pointer(to), pointer(from), kMiB, 0, Engine::d2d};
    const auto calls_of_a_start = [&] {
        Completion done(executor);
        const std::uint64_t before = cuda->calls().contexts;
        cuda->copy(order, done);
        const std::uint64_t made = cuda->calls().contexts - before;
        cuda->get_ready(nullptr);
        finish(done);
        EXPECT_TRUE(done.status().ok()) << done.status().text();
        return made;
    };
    cuda->get_ready(&order);  // nothing like it was made yet: no harm
    EXPECT_GT(calls_of_a_start(), 0u);
    EXPECT_GT(calls_of_a_start(), 0u);
    ASSERT_EQ(gpu.cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
    cuda->get_ready(&order);
    EXPECT_EQ(calls_of_a_start(), 0u);
    CUcontext current = primary;
    EXPECT_EQ(gpu.cuCtxGetCurrent(&current), CUDA_SUCCESS);
    EXPECT_EQ(current, nullptr) << "the program's own is what it was";
    ASSERT_EQ(gpu.cuCtxSetCurrent(primary), CUDA_SUCCESS);
    EXPECT_EQ(read(to, kMiB), data);
    gpu.cuMemFree_v2(from);
    gpu.cuMemFree_v2(to);
}

TEST_F(CudaContexts, WhileReadyForOneContextCopiesAreMadeInOthers) {
    const CUdeviceptr first = allocate(4096);
    classify(pointer(first), 4096);
    write(first, pattern(4096, 1));
    const Copy out{host, pointer(first), 256, 0, Engine::d2h};
    ASSERT_TRUE(copy(out).ok());
    CUcontext own = nullptr;
    ASSERT_EQ(gpu.cuCtxCreate_v2(&own, 0, 0), CUDA_SUCCESS);
    const CUdeviceptr second = allocate(4096);
    classify(pointer(second), 4096);
    write(second, pattern(4096, 2));
    std::uint8_t other[256] = {};
    cuda->get_ready(&out);
    EXPECT_TRUE(copy({other, pointer(second), 256, 0, Engine::d2h}).ok());
    EXPECT_TRUE(copy(out).ok());
    cuda->get_ready(nullptr);
    EXPECT_EQ(std::memcmp(host, pattern(4096, 1).data(), 256), 0);
    EXPECT_EQ(std::memcmp(other, pattern(4096, 2).data(), 256), 0);
    CUcontext current = nullptr;
    EXPECT_EQ(gpu.cuCtxGetCurrent(&current), CUDA_SUCCESS);
    EXPECT_EQ(current, own);
    cuda->shut_down();
    gpu.cuCtxDestroy_v2(own);
    ASSERT_EQ(gpu.cuCtxSetCurrent(primary), CUDA_SUCCESS);
    gpu.cuMemFree_v2(first);
}

TEST_F(CudaContexts, AKeptContextIsPushedAgainAboveAnotherOne) {
    cuda::Driver driver(GpuProgram::library());
    ASSERT_TRUE(driver.ready());
    CUcontext own = nullptr;
    ASSERT_EQ(gpu.cuCtxCreate_v2(&own, 0, 0), CUDA_SUCCESS);
    const auto current = [this] {
        CUcontext context = nullptr;
        EXPECT_EQ(gpu.cuCtxGetCurrent(&context), CUDA_SUCCESS);
        return context;
    };
    {
        const cuda::KeptCurrent kept(driver, {primary, cuda::context_id(driver, primary), 0});
        const std::uint64_t before = driver.calls().contexts;
        {
            const cuda::Current inside(driver, primary);
            EXPECT_TRUE(inside.ok());
        }
        EXPECT_EQ(driver.calls().contexts, before);
        {
            const cuda::Current above(driver, own);
            const cuda::Current again(driver, primary);
            EXPECT_TRUE(above.ok() && again.ok());
            EXPECT_EQ(current(), primary);
        }
        EXPECT_EQ(current(), primary);
    }
    EXPECT_EQ(current(), own);
    const cuda::Current above(driver, own);
    const cuda::Current afterwards(driver, primary);
    EXPECT_EQ(current(), primary) << "nothing is kept any more";
}

TEST_F(CudaContexts, NobodyIsReadyInAContextThatWasReset) {
    CUdeviceptr memory = allocate(4096);
    classify(pointer(memory), 4096);
    const Copy before{host, pointer(memory), 256, 0, Engine::d2h};
    ASSERT_TRUE(copy(before).ok());
    ASSERT_EQ(gpu.cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
    CUcontext again = nullptr;
    ASSERT_EQ(gpu.cuDevicePrimaryCtxRetain(&again, 0), CUDA_SUCCESS);
    ASSERT_EQ(gpu.cuCtxSetCurrent(again), CUDA_SUCCESS);
    cuda->get_ready(&before);
    memory = allocate(4096);
    const auto data = pattern(256, 5);
    write(memory, data);
    classify(pointer(memory), 4096);
    const Status status = copy({host, pointer(memory), 256, 0, Engine::d2h});
    cuda->get_ready(nullptr);
    EXPECT_TRUE(status.ok()) << status.text();
    EXPECT_EQ(std::memcmp(host, data.data(), 256), 0);
    gpu.cuMemFree_v2(memory);
    gpu.cuDevicePrimaryCtxRelease_v2(0);
}

TEST_F(CudaContexts, NothingIsLeftBehind) {
    if (!gpu.simulated()) GTEST_SKIP() << "needs the simulator's census";
    simgpu_census before{};
    simgpu_census after{};
    gpu.simgpu_take_census(&before);
    const CUdeviceptr memory = allocate(4096);
    classify(pointer(memory), 4096);
    void* mapped = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_TRUE(cuda->pin(mapped, 8192).ok());
    EXPECT_TRUE(copy({host, pointer(memory), 256, 0, Engine::d2h}).ok());
    EXPECT_TRUE(copy({pointer(memory), host, 256, 0, Engine::h2d}).ok());
    cuda->shut_down();
    gpu.cuMemFree_v2(memory);
    gpu.simgpu_take_census(&after);
    EXPECT_EQ(after.streams, before.streams);
    EXPECT_EQ(after.events, before.events);
    EXPECT_EQ(after.host_ranges, before.host_ranges);
    EXPECT_EQ(after.device_ranges, before.device_ranges);
    munmap(mapped, 8192);
}

TEST_F(CudaContexts, AForkedChildTouchesNothing) {
    const CUdeviceptr memory = allocate(4096);
    classify(pointer(memory), 4096);
    ASSERT_TRUE(copy({host, pointer(memory), 256, 0, Engine::d2h}).ok());
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        const std::uint64_t before = cuda->calls().total();
        cuda->shut_down();
        _exit(cuda->calls().total() == before ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_TRUE(copy({host, pointer(memory), 256, 0, Engine::d2h}).ok());
    gpu.cuMemFree_v2(memory);
}

struct CudaPins : CudaTest {
    void SetUp() override {
        CudaTest::SetUp();
        mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(mapped, MAP_FAILED);
    }
    void TearDown() override {
        CudaTest::TearDown();
        munmap(mapped, kBytes);
    }
    void use_gpu() {
        const CUdeviceptr memory = allocate(64);
        classify(pointer(memory), 64);
        std::uint8_t byte = 0;
        EXPECT_TRUE(copy({&byte, pointer(memory), 1, 0, Engine::d2h}).ok());
        gpu.cuMemFree_v2(memory);
    }
    static constexpr std::size_t kBytes = 65536;
    void* mapped = nullptr;
};

TEST_F(CudaPins, MemoryNamedBeforeAnyContextIsPinnedWithTheFirstOne) {
    EXPECT_TRUE(cuda->pin(mapped, kBytes).ok());
    use_gpu();
    EXPECT_EQ(classify(mapped, kBytes).kind, MemoryKind::pinned);
    cuda->unpin(mapped);
    EXPECT_EQ(classify(mapped, kBytes).kind, MemoryKind::host);
}

TEST_F(CudaPins, MemoryTheProgramRegisteredItselfStaysRegistered) {
    use_gpu();
    ASSERT_EQ(gpu.cuMemHostRegister_v2(mapped, kBytes, 0), CUDA_SUCCESS);
    EXPECT_TRUE(cuda->pin(mapped, kBytes).ok());
    cuda->unpin(mapped);
    EXPECT_EQ(classify(mapped, kBytes).kind, MemoryKind::pinned);
    EXPECT_EQ(gpu.cuMemHostUnregister(mapped), CUDA_SUCCESS);
}

TEST_F(CudaPins, ARefusalIsToldOnceAndNotTriedAgain) {
    if (!gpu.simulated()) GTEST_SKIP() << "needs fault injection";
    use_gpu();
    ASSERT_EQ(gpu.simgpu_fault("cuMemHostRegister_v2:*:800"), 0);
    const Status refused = cuda->pin(mapped, kBytes);
    EXPECT_EQ(refused.error_class(), MPI_ERR_OTHER);
    EXPECT_NE(refused.text().find("cuMemHostRegister"), std::string_view::npos);
    const std::uint64_t before = gpu.simgpu_calls("cuMemHostRegister_v2");
    use_gpu();
    EXPECT_EQ(gpu.simgpu_calls("cuMemHostRegister_v2"), before);
}

}  // namespace
}  // namespace gantry::device
