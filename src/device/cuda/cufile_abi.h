// SPDX-License-Identifier: BSD-3-Clause
//
// What we need of libcufile.so.0 (GPUDirect Storage), as far as its binary interface goes.
#pragma once

#include <sys/types.h>

#include <cstddef>

extern "C" {
// Zero both: success. Errors of cuFile itself begin at 5000.
struct CufileError {
    int error = 0;
    int driver_error = 0;
};
struct CufileDescription {
    int type = 1;  // a file descriptor
    union {
        int file;
        void* unused;
    } handle = {0};
    const void* operations = nullptr;
};
// The beginning of what cuFileDriverGetProperties fills; the rest is room for what follows.
struct CufileProperties {
    unsigned kernel_module_major = 0;  // 0: it is not there, and cuFile copies through host memory
    unsigned kernel_module_minor = 0;
    char rest[1016] = {};
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
