/* SPDX-License-Identifier: BSD-3-Clause */
/* As much of the CUDA runtime as docs/examples need, over the driver: the examples are compiled and
   run where no CUDA toolkit is (examples_test.py). */
#pragma once

#include <stddef.h>

typedef enum { cudaSuccess = 0 } cudaError_t;

int cuInit(unsigned flags);
int cuDeviceGetCount(int* count);
int cuDevicePrimaryCtxRetain(void** context, int device);
int cuCtxSetCurrent(void* context);
int cuCtxSynchronize(void);
int cuMemAlloc_v2(unsigned long long* address, size_t bytes);
int cuMemFree_v2(unsigned long long address);

static inline int cudaGetDeviceCount(int* count) {
    const int failed = cuInit(0);
    return failed != 0 ? failed : cuDeviceGetCount(count);
}
static inline int cudaSetDevice(int device) {
    void* context = NULL;
    const int failed = cuDevicePrimaryCtxRetain(&context, device);
    return failed != 0 ? failed : cuCtxSetCurrent(context);
}
static inline int cudaMalloc(void** memory, size_t bytes) {
    unsigned long long address = 0;
    const int failed = cuMemAlloc_v2(&address, bytes);
    *memory = (void*)address;
    return failed;
}
static inline int cudaFree(void* memory) {
    return cuMemFree_v2((unsigned long long)memory);
}
static inline int cudaDeviceSynchronize(void) {
    return cuCtxSynchronize();
}
