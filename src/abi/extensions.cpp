// SPDX-License-Identifier: BSD-3-Clause
//
// mpi-ext.h: the questions that programs ask before they pass a device pointer. They may be asked
// at any time, also before MPI_Init, and never load or start a driver.
#pragma GCC visibility push(default)
#include <mpi-ext.h>
#pragma GCC visibility pop

#include "abi/call.hpp"
#include "mpi/bodies.hpp"

using namespace gantry;

extern "C" {

int MPIX_Query_cuda_support(void) {
    const mpi::Visit visit;
    return mpi::gpu_support(MPIX_GPU_SUPPORT_CUDA) ? 1 : 0;
}

int MPIX_GPU_query_support(int gpu_type, int* is_supported) {
    abi::Call call("MPIX_GPU_query_support", abi::When::always);
    call.pointer("is_supported", is_supported);
    if (!call.failed() && (gpu_type < MPIX_GPU_SUPPORT_CUDA || gpu_type > MPIX_GPU_SUPPORT_HIP))
        return call.leave(failure(MPI_ERR_ARG,
                                  "argument gpu_type is {} and must be one of MPIX_GPU_SUPPORT_*",
                                  gpu_type));
    if (call.failed()) return call.leave();
    *is_supported = mpi::gpu_support(gpu_type) ? 1 : 0;
    return MPI_SUCCESS;
}
}
