// SPDX-License-Identifier: BSD-3-Clause
#include <string.h>

#include "harness.hpp"

TEST(Copies, AnyPointerFindsItsWay) {
    simulated("dev=2", [] {
        const std::vector<char> data = pattern(100000, 1);
        const CUdeviceptr first = device_memory(data.size());
        CUcontext second_context = nullptr;
        OK(cuda().cuDevicePrimaryCtxRetain(&second_context, 1));
        OK(cuda().cuCtxPushCurrent_v2(second_context));
        const CUdeviceptr second = device_memory(data.size());
        const auto host = reinterpret_cast<CUdeviceptr>(data.data());
        const auto pinned = reinterpret_cast<CUdeviceptr>(pinned_memory(data.size()));
        std::vector<char> back(data.size());
        OK(cuda().cuMemcpy(pinned, host, data.size()));
        OK(cuda().cuMemcpy(first, pinned, data.size()));
        OK(cuda().cuMemcpy(second, first, data.size()));  // returns early
        OK(cuda().cuMemcpy(reinterpret_cast<CUdeviceptr>(back.data()), second, data.size()));
        EXPECT_EQ(back, data);
    });
}

TEST(Copies, AStagedPageableSourceMayBeReusedAtOnce) {
    simulated("", [] {
        std::vector<char> host = pattern(3000, 2);
        const std::vector<char> data = host;
        const CUdeviceptr device = device_memory(host.size());
        const CUstream stream = new_stream();
        gate().close(stream);
        OK(cuda().cuMemcpyHtoDAsync_v2(device, host.data(), host.size(), stream));
        memset(host.data(), 0, host.size());
        gate().open();
        OK(cuda().cuStreamSynchronize(stream));
        EXPECT_EQ(read_back(device, data.size()), data);
    });
}

namespace {

// Memory that a copy is going to read. Thread sanitizer does not see that the copy waits for the gate.
__attribute__((no_sanitize("thread"))) void overwrite(volatile char* at, char value, int bytes) {
    for (int i = 0; i < bytes; ++i)
        at[i] = value;
}

}  // namespace

TEST(Copies, APinnedSourceOverwrittenTooEarlySpoilsTheCopy) {
    simulated("", [] {
        char* host = pinned_memory(64);
        memset(host, 1, 64);
        const CUdeviceptr device = device_memory(64);
        const CUstream stream = new_stream();
        gate().close(stream);
        OK(cuda().cuMemcpyHtoDAsync_v2(device, host, 64, stream));
        overwrite(host, 2, 64);
        gate().open();
        OK(cuda().cuStreamSynchronize(stream));
        EXPECT_EQ(read_back(device, 1)[0], 2);
    });
}

TEST(Copies, DeviceToDeviceReturnsEarlyUnlessSyncMemopsIsSet) {
    simulated("", [] {
        const CUdeviceptr source = device_memory(4096), target = device_memory(4096);
        gate().close(CU_STREAM_LEGACY);
        OK(cuda().cuMemcpyDtoD_v2(target, source, 4096));
        EXPECT_EQ(cuda().cuStreamQuery(CU_STREAM_LEGACY), CUDA_ERROR_NOT_READY);
        gate().open();
        const unsigned on = 1;
        OK(cuda().cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, target));
        OK(cuda().cuMemcpyDtoD_v2(target, source, 4096));
        OK(cuda().cuStreamQuery(CU_STREAM_LEGACY));
        OK(cuda().cuMemsetD8_v2(target, 3, 4096));
        OK(cuda().cuStreamQuery(CU_STREAM_LEGACY));
    });
}

TEST(Copies, TwoDimensionalCopiesMoveTheRectangleOnly) {
    simulated("", [] {
        constexpr std::size_t kPitch = 64, kWidth = 24, kHeight = 10;
        const std::vector<char> data = pattern(kPitch * kHeight, 3);
        const CUdeviceptr device = device_memory(kPitch * (kHeight - 1) + kWidth);
        OK(cuda().cuMemsetD8_v2(device, 0, kPitch * (kHeight - 1) + kWidth));
        CUDA_MEMCPY2D copy{};
        copy.srcMemoryType = CU_MEMORYTYPE_HOST;
        copy.srcHost = data.data();
        copy.srcPitch = kPitch;
        copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
        copy.dstDevice = device;
        copy.dstPitch = kPitch;
        copy.WidthInBytes = kWidth;
        copy.Height = kHeight;
        OK(cuda().cuMemcpy2D_v2(&copy));
        const std::vector<char> back = read_back(device, kPitch * (kHeight - 1) + kWidth);
        for (std::size_t at = 0; at < back.size(); ++at) {
            ASSERT_EQ(back[at], at % kPitch < kWidth ? data[at] : 0) << at;
        }
        copy.Height = kHeight + 1;  // one row beyond the allocation
        EXPECT_EQ(cuda().cuMemcpy2D_v2(&copy), CUDA_ERROR_INVALID_VALUE);
    });
}

TEST(Copies, ThreeDimensionalCopiesGoFromAnyBoxToAnyBox) {
    simulated("", [] {
        const std::vector<char> data = pattern(8 * 6 * 5, 4);
        const CUdeviceptr device = device_memory(data.size());
        std::vector<char> back(3 * 2 * 2);
        OK(cuda().cuMemcpyHtoD_v2(device, data.data(), data.size()));
        CUDA_MEMCPY3D copy{};
        copy.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
        copy.srcDevice = device;
        copy.srcPitch = 8;
        copy.srcHeight = 6;
        copy.srcXInBytes = 4;
        copy.srcY = 3;
        copy.srcZ = 2;
        copy.dstMemoryType = CU_MEMORYTYPE_HOST;
        copy.dstHost = back.data();
        copy.dstPitch = 3;
        copy.dstHeight = 2;
        copy.WidthInBytes = 3;
        copy.Height = 2;
        copy.Depth = 2;
        OK(cuda().cuMemcpy3D_v2(&copy));
        std::size_t at = 0;
        for (std::size_t z = 2; z < 4; ++z) {
            for (std::size_t y = 3; y < 5; ++y) {
                for (std::size_t x = 4; x < 7; ++x) {
                    ASSERT_EQ(back[at++], data[(z * 6 + y) * 8 + x]);
                }
            }
        }
    });
}

TEST(Copies, BatchesRefuseTheDefaultStream) {
    simulated("", [] {
        const CUdeviceptr source = device_memory(64), target = device_memory(64);
        CUdeviceptr targets[] = {target, target + 32}, sources[] = {source, source + 32};
        std::size_t bytes[] = {32, 32}, indices[] = {0};
        CUmemcpyAttributes attributes{};
        attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
        OK(cuda().cuMemsetD8_v2(source, 6, 64));
        OK(cuda().cuCtxSynchronize());
        EXPECT_EQ(cuda().cuMemcpyBatchAsync_v2(targets, sources, bytes, 2, &attributes, indices, 1,
                                               nullptr),
                  CUDA_ERROR_INVALID_VALUE);
        const CUstream stream = new_stream();
        OK(cuda().cuMemcpyBatchAsync_v2(targets, sources, bytes, 2, &attributes, indices, 1,
                                        stream));
        OK(cuda().cuStreamSynchronize(stream));
        EXPECT_EQ(read_back(target, 64), std::vector<char>(64, 6));
    });
}
