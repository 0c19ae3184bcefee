// SPDX-License-Identifier: BSD-3-Clause
//
// The functions of libmpi_abi.so.1, found by name in that very library. A personality exports the
// same names with other types, so it never calls one by name: whatever stands first in the process
// would answer.
#pragma once

#include "common/export.hpp"

#include <mpi-ext.h>
#include <mpi.h>

namespace gantry::personality {

struct Standard {
#define X(name) decltype(&::PMPI_##name) name;
#include "standard_functions.def"
#undef X
    decltype(&::MPIX_Query_cuda_support) Query_cuda_support;
    decltype(&::MPIX_GPU_query_support) GPU_query_support;
    decltype(&::MPIX_Op_create_x) Op_create_x;
    decltype(&::MPIX_Comm_create_errhandler_x) Comm_create_errhandler_x;
    decltype(&::MPIX_Win_create_errhandler_x) Win_create_errhandler_x;
    decltype(&::MPIX_File_create_errhandler_x) File_create_errhandler_x;
    decltype(&::MPIX_Session_create_errhandler_x) Session_create_errhandler_x;
    decltype(&::MPIX_Comm_revoke) Comm_revoke;
    decltype(&::MPIX_Comm_is_revoked) Comm_is_revoked;
    decltype(&::MPIX_Comm_shrink) Comm_shrink;
    decltype(&::MPIX_Comm_ishrink) Comm_ishrink;
    decltype(&::MPIX_Comm_agree) Comm_agree;
    decltype(&::MPIX_Comm_iagree) Comm_iagree;
    decltype(&::MPIX_Comm_get_failed) Comm_get_failed;
    decltype(&::MPIX_Comm_ack_failed) Comm_ack_failed;
    decltype(&::MPIX_Comm_failure_ack) Comm_failure_ack;
    decltype(&::MPIX_Comm_failure_get_acked) Comm_failure_get_acked;
};

// Filled when the personality is loaded, before anybody can call it.
GANTRY_HIDDEN extern Standard standard;

// Ends the process with a sentence if it holds an MPI library besides this one.
void refuse_second_library();

}  // namespace gantry::personality
