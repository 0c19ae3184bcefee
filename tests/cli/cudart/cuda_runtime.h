/* SPDX-License-Identifier: BSD-3-Clause */
/* As much of the CUDA runtime's header as docs/examples need: they are compiled and run where no CUDA
   toolkit is, with the runtime over the simulated driver (examples_test.py). */
#pragma once

#include <stddef.h>

typedef enum { cudaSuccess = 0 } cudaError_t;

cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaMalloc(void** memory, size_t bytes);
cudaError_t cudaFree(void* memory);
enum cudaMemcpyKind {
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3
};
cudaError_t cudaMemcpy(void* target, const void* source, size_t bytes,
                       enum cudaMemcpyKind direction);
cudaError_t cudaDeviceSynchronize(void);
