// SPDX-License-Identifier: BSD-3-Clause
//
// What we need of libcufile.so.0 (GPUDirect Storage), as far as its binary interface goes.
#pragma once

#include <sys/types.h>

#include <cstddef>

extern "C" {
// Zero: success. Errors of cuFile itself lie above kCufileErrors; of the driver's, `error` is kCufileDriverError.
struct CufileError {
    int error = 0;
    int driver_error = 0;
};
enum CufileErrors : int {
    kCufileErrors = 5000,
    kCufileFileNotSupported = 5008,
    kCufileDriverError = 5011,
    kCufilePointerInvalid = 5012,
    kCufileNotDirect = 5020,  // the file is not open with O_DIRECT
    kCufileAlreadyOpen = 5026,
};
struct CufileDescription {
    int type = 1;  // a file descriptor
    union {
        int file;
        void* unused;
    } handle = {0};
    const void* operations = nullptr;
};
// What cuFileDriverGetProperties fills, and room for what later releases add.
struct CufileProperties {
    unsigned kernel_module_major = 0;  // of nvidia-fs; 0: it is not there
    unsigned kernel_module_minor = 0;
    size_t poll_threshold = 0;
    size_t most_direct = 0;
    unsigned supported = 0;  // bits, by CufileSupport
    unsigned control = 0;    // bits: 0 polls, 1 may copy through host memory
    unsigned features = 0;
    unsigned device_cache_kib = 0;
    unsigned buffer_cache_kib = 0;
    unsigned pinned_kib = 0;
    unsigned batch = 0;
    unsigned batch_timeout_ms = 0;
    char later[968] = {};
};
enum CufileSupport : unsigned {
    kCufileNvmeByPci = 11,  // NVMe by the kernel's own peer-to-peer copies, without nvidia-fs
};
using PFN_cuFileDriverOpen = CufileError (*)();
using PFN_cuFileDriverGetProperties = CufileError (*)(CufileProperties*);
using PFN_cuFileHandleRegister = CufileError (*)(void** handle, CufileDescription*);
using PFN_cuFileHandleDeregister = void (*)(void* handle);
using PFN_cuFileRead = ssize_t (*)(void* handle, void* memory, size_t bytes, off_t in_file,
                                   off_t in_memory);
using PFN_cuFileWrite = ssize_t (*)(void* handle, const void* memory, size_t bytes, off_t in_file,
                                    off_t in_memory);
}
