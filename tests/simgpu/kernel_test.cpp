// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>

#include "harness.hpp"

namespace {

constexpr const char* kPtx = R"(
//
// What a compiler writes, without the bodies.
//
.version 6.0
.target sm_70
.address_size 64

.visible .entry add(
    .param .u64 add_param_0,
    .param .u32 add_param_1,
    .param .u64 add_param_2
)
{
    ret;
}
.visible .entry add_nested(.param .align 8 .b8 add_nested_param_0[16], .param .u64 add_nested_param_1) { ret; }
.visible .entry wait_flag(
    .param .u64 wait_flag_param_0
) { ret; }
.visible .entry orphan() { ret; }
)";

CUfunction kernel(const char* name) {
    static CUmodule module = nullptr;
    if (module == nullptr) {
        EXPECT_EQ(cuda().cuModuleLoadData(&module, kPtx), CUDA_SUCCESS);
    }
    CUfunction function = nullptr;
    EXPECT_EQ(cuda().cuModuleGetFunction(&function, module, name), CUDA_SUCCESS);
    return function;
}

CUresult launch(CUfunction function, CUstream stream, void** parameters, void** extra = nullptr) {
    return cuda().cuLaunchKernel(function, 2, 1, 1, 128, 1, 1, 0, stream, parameters, extra);
}

void with_twins(const std::string& settings, const std::function<void()>& body) {
    setenv("SIMGPU_KERNELS", SIMGPU_TEST_TWINS, 1);
    simulated(settings, body);
    unsetenv("SIMGPU_KERNELS");
}

}  // namespace

TEST(Kernels, RunAsTheirTwinsInStreamOrder) {
    NEEDS_SIMULATOR();
    with_twins("", [] {
        const CUstream stream = new_stream();
        const CUdeviceptr data = device_memory(400);
        OK(cuda().cuMemsetD32Async(data, 40, 100, stream));
        int value = 2;
        unsigned long long count = 100;
        CUdeviceptr address = data;
        void* parameters[] = {&address, &value, &count};
        OK(launch(kernel("add"), stream, parameters));
        value = 1000;  // captured at the call
        OK(cuda().cuStreamSynchronize(stream));
        EXPECT_EQ(read_back(data, 400), std::vector<char>([] {
                      std::vector<char> want;
                      for (int index = 0; index < 100; ++index) {
                          want.insert(want.end(), {42, 0, 0, 0});
                      }
                      return want;
                  }()));
    });
}

TEST(Kernels, TakeParametersAsOneBuffer) {
    NEEDS_SIMULATOR();
    with_twins("", [] {
        const CUdeviceptr data = device_memory(4);
        OK(cuda().cuMemsetD32_v2(data, 1, 1));
        struct {
            CUdeviceptr address;
            int value;
            unsigned long long count;
        } buffer{data, 5, 1};
        std::size_t bytes = sizeof buffer;
        void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE,
                         &bytes, CU_LAUNCH_PARAM_END};
        OK(launch(kernel("add"), nullptr, nullptr, extra));
        EXPECT_EQ(read_back(data, 1)[0], 6);
    });
}

TEST(Kernels, PointersInStructuresAndInDeviceMemoryWork) {
    NEEDS_SIMULATOR();
    with_twins("", [] {
        const CUdeviceptr data = device_memory(8), list = device_memory(8);
        OK(cuda().cuMemsetD32_v2(data, 0, 2));
        const CUdeviceptr second = data + 4;
        OK(cuda().cuMemcpyHtoD_v2(list, &second, 8));
        struct {
            CUdeviceptr data;
            int value;
        } nested{data, 9};
        CUdeviceptr list_address = list;
        void* parameters[] = {&nested, &list_address};
        OK(launch(kernel("add_nested"), nullptr, parameters));
        const std::vector<char> back = read_back(data, 8);
        EXPECT_EQ(back[0], 9);
        EXPECT_EQ(back[4], 9);
    });
}

TEST(Kernels, WithoutATwinHaveAHandleAndFailAtLaunch) {
    NEEDS_SIMULATOR();
    with_twins("", [] {
        const CUfunction orphan = kernel("orphan");
        EXPECT_EQ(launch(orphan, nullptr, nullptr), CUDA_ERROR_NOT_SUPPORTED);
        CUmodule module = nullptr;
        CUfunction missing = nullptr;
        OK(cuda().cuFuncGetModule(&module, orphan));
        EXPECT_EQ(cuda().cuModuleGetFunction(&missing, module, "no_such_kernel"),
                  CUDA_ERROR_NOT_FOUND);
    });
}

TEST(Kernels, AFreedPointerIsAnIllegalAddressForTheContext) {
    NEEDS_SIMULATOR();
    with_twins("", [] {
        CUdeviceptr freed = device_memory(4);
        OK(cuda().cuMemFree_v2(freed));
        int value = 1;
        unsigned long long count = 1;
        void* parameters[] = {&freed, &value, &count};
        OK(launch(kernel("add"), nullptr, parameters));
        EXPECT_EQ(cuda().cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
        CUdeviceptr address = 0;
        EXPECT_EQ(cuda().cuMemAlloc_v2(&address, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
    });
}

TEST(Kernels, MayWaitForAFlagThatAnotherStreamWrites) {
    NEEDS_SIMULATOR();
    for (const char* settings : {"", "help=0"}) {
        with_twins(settings, [] {
            CUdeviceptr flag = device_memory(4);
            OK(cuda().cuMemsetD32_v2(flag, 0, 1));
            OK(cuda().cuCtxSynchronize());
            const CUstream waiting = new_stream(), writing = new_stream();
            void* parameters[] = {&flag};
            OK(launch(kernel("wait_flag"), waiting, parameters));
            EXPECT_EQ(cuda().cuStreamQuery(waiting), CUDA_ERROR_NOT_READY);
            OK(cuda().cuStreamWriteValue32_v2(writing, flag, 1, 0));
            OK(cuda().cuStreamSynchronize(waiting));
        });
    }
}

TEST(Kernels, TakeTheTimeTheirTrafficTakes) {
    with_twins("machine=h200,scale=100", [] {
        const CUstream stream = new_stream();
        CUdeviceptr data = device_memory(4u << 20);
        int value = 1;
        unsigned long long count = 1u << 20;
        void* parameters[] = {&data, &value, &count};
        OK(launch(kernel("add"), stream, parameters));
        OK(cuda().cuStreamSynchronize(stream));
        simgpu_operation op{};
        ASSERT_EQ(cuda().simgpu_operations(&op, 1), 1u);
        EXPECT_EQ(op.kind, SIMGPU_KERNEL);
        const double expected = 8.0 * (1u << 20) / 2.03e12 / 2 * 1e9 * 100;
        EXPECT_NEAR(static_cast<double>(op.end - op.start) / expected, 1.0, 0.05);
    });
}

TEST(Kernels, BinariesForRealHardwareAreRefused) {
    NEEDS_SIMULATOR();
    simulated("", [] {
        CUmodule module = nullptr;
        const char of_a_processor[64] =
            "\x7f"
            "ELF and more";
        EXPECT_EQ(cuda().cuModuleLoadData(&module, of_a_processor), CUDA_ERROR_NO_BINARY_FOR_GPU);
        CUlibrary library = nullptr;
        CUkernel found = nullptr;
        CUfunction function = nullptr;
        OK(cuda().cuLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
        OK(cuda().cuLibraryGetKernel(&found, library, "orphan"));
        OK(cuda().cuKernelGetFunction(&function, found));
        OK(cuda().cuLibraryUnload(library));
        EXPECT_EQ(launch(function, nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
    });
}
