// SPDX-License-Identifier: BSD-3-Clause
//
// mpi-ext.h: the questions that programs ask before they pass a device pointer, at any time, also
// before MPI_Init (they never load or start a driver); and the callbacks with a pointer of the
// program's.
#pragma GCC visibility push(default)
#include <mpi-ext.h>
#pragma GCC visibility pop

#include "abi/call.hpp"
#include "mpi/bodies.hpp"

using namespace gantry;

namespace {

// Judges what all makers of such callbacks have in common.
Status judge(bool function, MPIX_Destructor_function* destructor, const char* name,
             const void* result) {
    if (!function) return failure(MPI_ERR_ARG, "the argument for the function is a null pointer");
    if (destructor != nullptr)
        return failure(MPI_ERR_UNSUPPORTED_OPERATION,
                       "argument destructor_fn must be null: destructors are not called");
    if (result == nullptr) return failure(MPI_ERR_ARG, "argument {} is a null pointer", name);
    return success();
}

template <class Function, class Handle>
int make_errhandler(const char* function_name, Function* function,
                    MPIX_Destructor_function* destructor, void* extra_state, Handle* made,
                    Status (*body)(Function*, void*, Handle*)) {
    abi::Call call(function_name, abi::When::always);
    Status judged = judge(function != nullptr, destructor, "errhandler", made);
    return call.leave(judged.ok() ? body(function, extra_state, made) : std::move(judged));
}

}  // namespace

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

int MPIX_Op_create_x(MPIX_User_function_x* user_fn, MPIX_Destructor_function* destructor_fn,
                     int commute, void* extra_state, MPI_Op* op) {
    abi::Call call("MPIX_Op_create_x", abi::When::running);
    if (call.failed()) return call.leave();
    Status judged = judge(user_fn != nullptr, destructor_fn, "op", op);
    return call.leave(judged.ok() ? mpi::op_create_x(user_fn, commute, extra_state, op)
                                  : std::move(judged));
}

int MPIX_Comm_create_errhandler_x(MPIX_Comm_errhandler_function_x* errhandler_fn,
                                  MPIX_Destructor_function* destructor_fn, void* extra_state,
                                  MPI_Errhandler* errhandler) {
    return make_errhandler("MPIX_Comm_create_errhandler_x", errhandler_fn, destructor_fn,
                           extra_state, errhandler, &mpi::comm_create_errhandler_x);
}

int MPIX_Win_create_errhandler_x(MPIX_Win_errhandler_function_x* errhandler_fn,
                                 MPIX_Destructor_function* destructor_fn, void* extra_state,
                                 MPI_Errhandler* errhandler) {
    return make_errhandler("MPIX_Win_create_errhandler_x", errhandler_fn, destructor_fn,
                           extra_state, errhandler, &mpi::win_create_errhandler_x);
}

int MPIX_File_create_errhandler_x(MPIX_File_errhandler_function_x* errhandler_fn,
                                  MPIX_Destructor_function* destructor_fn, void* extra_state,
                                  MPI_Errhandler* errhandler) {
    return make_errhandler("MPIX_File_create_errhandler_x", errhandler_fn, destructor_fn,
                           extra_state, errhandler, &mpi::file_create_errhandler_x);
}

int MPIX_Session_create_errhandler_x(MPIX_Session_errhandler_function_x* errhandler_fn,
                                     MPIX_Destructor_function* destructor_fn, void* extra_state,
                                     MPI_Errhandler* errhandler) {
    return make_errhandler("MPIX_Session_create_errhandler_x", errhandler_fn, destructor_fn,
                           extra_state, errhandler, &mpi::session_create_errhandler_x);
}
}
