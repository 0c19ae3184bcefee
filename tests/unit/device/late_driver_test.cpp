// SPDX-License-Identifier: BSD-3-Clause
//
// Programs that have no driver, load it late, or initialise it late. Each case runs in a process of
// its own (a death test that re-executes this program), since a driver cannot be unloaded or
// un-initialised.
#include "device/cuda/cuda_device.hpp"
#include "device/discover.hpp"
#include "gpu_program.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>

namespace gantry::device {
namespace {

using testing_support::GpuProgram;

// Ends the process with a sentence when something does not hold.
void expect(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "does not hold: %s\n", what);
    std::exit(1);
}

void* mapped_memory() {
    return mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

void without_driver() {
    config::Config config;
    config.cuda_library = "libcuda-that-nobody-has.so.1";
    cuda::CudaDevice device(config);
    expect(!device.active(), "no driver, not active");
    Result<Location> location = device.classify(mapped_memory(), 4096);
    expect(location.ok() && location->kind == MemoryKind::host, "everything is host memory");
    expect(device.gpu_count() == 0, "no GPUs");
    expect(device.progress() == 0 && !device.pending(), "nothing to do");
    expect(device.pin(mapped_memory(), 4096).ok(), "pinning waits for a driver");
    device.shut_down();
    expect(device.calls().total() == 0, "no driver call at all");
    std::exit(0);
}

void with_a_late_driver() {
    config::Config config;
    config.cuda_library = GpuProgram::library();
    cuda::CudaDevice device(config);
    expect(!device.active() && device.calls().total() == 0, "asleep before the library is loaded");
    expect(!device.gpu_of_rank(0).in_use && device.calls().total() == 0,
           "which GPU comes is guessed without the driver");
    GpuProgram program;
    expect(program.load(), "the library loads");
    int on_stack = 0;
    expect(device.classify(&on_stack, sizeof(on_stack)).ok() && device.calls().total() == 0,
           "a stack buffer never asks the driver");
    expect(!device.active(), "asleep before cuInit");
    expect(device.classify(mapped_memory(), 4096).ok(), "host memory before cuInit");
    expect(device.calls().probes == device.calls().total(), "before cuInit only probes");
    expect(program.cuInit(0) == CUDA_SUCCESS, "cuInit works");
    expect(device.active(), "awake after cuInit");
    CUcontext context = nullptr;
    CUdeviceptr memory = 0;
    program.cuDevicePrimaryCtxRetain(&context, 0);
    program.cuCtxSetCurrent(context);
    expect(program.cuMemAlloc_v2(&memory, 4096) == CUDA_SUCCESS, "memory");
    Result<Location> location = device.classify(reinterpret_cast<void*>(memory), 4096);
    expect(location.ok() && location->on_device(), "device memory is recognised");
    device.shut_down();
    std::exit(0);
}

// cuInit alone, and even host pointers, create no context on any GPU.
void with_host_pointers_only() {
    config::Config config;
    config.cuda_library = GpuProgram::library();
    GpuProgram program;
    expect(program.load() && program.cuInit(0) == CUDA_SUCCESS,
           "the program initialises the driver");
    cuda::CudaDevice device(config);
    expect(device.classify(mapped_memory(), 4096).ok(), "host memory");
    expect(device.gpu_count() > 0, "GPUs are listed");
    if (program.simulated()) {
        expect(program.simgpu_calls("cuDevicePrimaryCtxRetain") == 0, "no context was made");
        expect(program.simgpu_calls("cuStreamCreate") +
                       program.simgpu_calls("cuStreamCreateWithPriority") ==
                   0,
               "no stream was made");
    }
    std::exit(0);
}

void without_a_gpu() {
    setenv("SIMGPU_FAULT", "no_device", 1);
    config::Config config;
    config.cuda_library = GpuProgram::library();
    GpuProgram program;
    expect(program.load(), "the library loads");
    if (!program.simulated()) std::exit(0);  // a real GPU cannot be taken away
    expect(program.cuInit(0) == CUDA_ERROR_NO_DEVICE, "a driver without a device");
    cuda::CudaDevice device(config);
    expect(!device.active(), "not active");
    expect(device.classify(mapped_memory(), 4096).ok(), "host memory");
    std::exit(0);
}

struct LateDriverDeathTest : testing::Test {
    void SetUp() override {
        GTEST_FLAG_SET(death_test_style, "threadsafe");
        if (GpuProgram::library().empty()) GTEST_SKIP() << "no driver to test with";
    }
};

TEST_F(LateDriverDeathTest, WithoutADriverEverythingIsHostMemoryAndNothingIsCalled) {
    EXPECT_EXIT(without_driver(), testing::ExitedWithCode(0), "");
}
TEST_F(LateDriverDeathTest, ADriverLoadedAndInitialisedAfterInitIsUsed) {
    EXPECT_EXIT(with_a_late_driver(), testing::ExitedWithCode(0), "");
}
TEST_F(LateDriverDeathTest, HostPointersCreateNoContext) {
    EXPECT_EXIT(with_host_pointers_only(), testing::ExitedWithCode(0), "");
}
TEST_F(LateDriverDeathTest, ADriverWithoutADeviceIsLikeNone) {
    EXPECT_EXIT(without_a_gpu(), testing::ExitedWithCode(0), "");
}

TEST(Discover, GivesADeviceThatCopiesOnTheHostWhenGpusAreSwitchedOff) {
    SteadyClock clock;
    Executor executor(clock);
    config::Config config;
    config.cuda = false;
    Result<std::unique_ptr<Device>> device = discover(executor, config);
    ASSERT_TRUE(device.ok());
    EXPECT_STREQ((*device)->name(), "none");
    EXPECT_FALSE((*device)->active());
    int source = 42;
    int destination = 0;
    Completion done(executor);
    (*device)->copy({&destination, &source, sizeof(int), 0, Engine::automatic}, done);
    EXPECT_TRUE(done.done());
    EXPECT_EQ(destination, 42);
    EXPECT_EQ((*device)->pin(&source, 4).error_class(), MPI_ERR_UNSUPPORTED_OPERATION);
}

TEST(Discover, GivesTheCudaDeviceByDefault) {
    SteadyClock clock;
    Executor executor(clock);
    Result<std::unique_ptr<Device>> device = discover(executor, config::Config{});
    ASSERT_TRUE(device.ok());
    EXPECT_STREQ((*device)->name(), "cuda");
}

}  // namespace
}  // namespace gantry::device
