// SPDX-License-Identifier: BSD-3-Clause
//
// The binary interface of libcufile.so.0, pinned: sizes, places and numbers of cufile.h in CUDA 12.9 (package
// nvidia-cufile-cu12 1.14.1 of PyPI), for 64-bit Linux.
#include "device/cuda/cufile_abi.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace {

TEST(CufileAbi, StructsHaveThePlacesOfNvidiasHeader) {
    static_assert(sizeof(CufileError) == 8);
    static_assert(offsetof(CufileError, driver_error) == 4);

    static_assert(sizeof(CufileDescription) == 24);
    static_assert(offsetof(CufileDescription, type) == 0);
    static_assert(offsetof(CufileDescription, handle) == 8);
    static_assert(offsetof(CufileDescription, operations) == 16);

    static_assert(offsetof(CufileProperties, kernel_module_major) == 0);
    static_assert(offsetof(CufileProperties, kernel_module_minor) == 4);
    static_assert(offsetof(CufileProperties, poll_threshold) == 8);
    static_assert(offsetof(CufileProperties, most_direct) == 16);
    static_assert(offsetof(CufileProperties, supported) == 24);
    static_assert(offsetof(CufileProperties, control) == 28);
    static_assert(offsetof(CufileProperties, features) == 32);
    static_assert(offsetof(CufileProperties, batch_timeout_ms) == 52);
    // The header's struct ends there; what the library may write behind it is ours, too.
    static_assert(offsetof(CufileProperties, later) == 56);
    static_assert(sizeof(CufileProperties) == 1024);
    SUCCEED();
}

TEST(CufileAbi, NumbersAreThoseOfNvidiasHeader) {
    EXPECT_EQ(CufileDescription().type, 1);                 // CU_FILE_HANDLE_TYPE_OPAQUE_FD
    EXPECT_EQ(kCufileFileNotSupported, kCufileErrors + 8);  // CU_FILE_IO_NOT_SUPPORTED
    EXPECT_EQ(kCufileDriverError, kCufileErrors + 11);      // CU_FILE_CUDA_DRIVER_ERROR
    EXPECT_EQ(kCufilePointerInvalid, kCufileErrors + 12);   // CU_FILE_CUDA_POINTER_INVALID
    EXPECT_EQ(kCufileNotDirect, kCufileErrors + 20);        // CU_FILE_DIO_NOT_SET
    EXPECT_EQ(kCufileAlreadyOpen, kCufileErrors + 26);      // CU_FILE_DRIVER_ALREADY_OPEN
    EXPECT_EQ(kCufileNvmeByPci, 11u);                       // CU_FILE_NVME_P2P_SUPPORTED
}

}  // namespace
