// SPDX-License-Identifier: BSD-3-Clause
//
// What an error message says about a handle of each kind. The numbers are the ABI's: every
// predefined handle is a constant below 4096, every other one the address of an object.
#pragma once

#include <mpi.h>

#include <cstdint>

namespace gantry::abi {

inline constexpr std::uintptr_t kFirstUserHandle = 4096;

struct HandleFacts {
    const char* noun;
    const char* null_name;
    std::uintptr_t null;
    int error_class;
};

template <class Handle>
struct HandleKind;

#define GANTRY_HANDLE_KIND(type, noun, null, value, error)             \
    template <>                                                        \
    struct HandleKind<type> {                                          \
        static constexpr HandleFacts facts{noun, #null, value, error}; \
    };
GANTRY_HANDLE_KIND(MPI_Comm, "communicator", MPI_COMM_NULL, 0x100, MPI_ERR_COMM)
GANTRY_HANDLE_KIND(MPI_Group, "group", MPI_GROUP_NULL, 0x108, MPI_ERR_GROUP)
GANTRY_HANDLE_KIND(MPI_Win, "window", MPI_WIN_NULL, 0x110, MPI_ERR_WIN)
GANTRY_HANDLE_KIND(MPI_File, "file", MPI_FILE_NULL, 0x118, MPI_ERR_FILE)
GANTRY_HANDLE_KIND(MPI_Session, "session", MPI_SESSION_NULL, 0x120, MPI_ERR_SESSION)
GANTRY_HANDLE_KIND(MPI_Message, "message", MPI_MESSAGE_NULL, 0x128, MPI_ERR_REQUEST)
GANTRY_HANDLE_KIND(MPI_Info, "info object", MPI_INFO_NULL, 0x130, MPI_ERR_INFO)
GANTRY_HANDLE_KIND(MPI_Errhandler, "error handler", MPI_ERRHANDLER_NULL, 0x140, MPI_ERR_ERRHANDLER)
GANTRY_HANDLE_KIND(MPI_Request, "request", MPI_REQUEST_NULL, 0x180, MPI_ERR_REQUEST)
GANTRY_HANDLE_KIND(MPI_Datatype, "datatype", MPI_DATATYPE_NULL, 0x200, MPI_ERR_TYPE)
GANTRY_HANDLE_KIND(MPI_Op, "reduction operation", MPI_OP_NULL, 0x020, MPI_ERR_OP)
#undef GANTRY_HANDLE_KIND

}  // namespace gantry::abi
