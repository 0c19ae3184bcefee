// SPDX-License-Identifier: BSD-3-Clause
//
// Error handlers, and `raise`: where every failure of an MPI call ends. The handler of the object
// that the call worked on decides; a call without one uses that of MPI_COMM_SELF, and before
// MPI_Init and after MPI_Finalize the initial handler (MPI 5.0 section 9.3).
#pragma once

#include "base/status.hpp"
#include "mpi/engine/handles.hpp"
#include "mpi/engine/object.hpp"

#include <mpi-ext.h>

namespace gantry::mpi {

struct Errhandler : Object<MPI_Errhandler> {
    enum class Kind { fatal, abort, return_code, comm, win, file, session };
    Kind kind = Kind::return_code;
    MPI_Comm_errhandler_function* comm_function = nullptr;
    MPI_Win_errhandler_function* win_function = nullptr;
    MPI_File_errhandler_function* file_function = nullptr;
    MPI_Session_errhandler_function* session_function = nullptr;
    // The forms of mpi-ext.h, with a pointer of the program's.
    MPIX_Comm_errhandler_function_x* comm_function_x = nullptr;
    MPIX_Win_errhandler_function_x* win_function_x = nullptr;
    MPIX_File_errhandler_function_x* file_function_x = nullptr;
    MPIX_Session_errhandler_function_x* session_function_x = nullptr;
    void* extra_state = nullptr;
};

void release(Errhandler* errhandler);
// Puts `errhandler` in the place of `slot`'s, owners counted.
void assign(Errhandler*& slot, Errhandler* errhandler);

// Whether an object of that kind can use it; else the sentence that says why not.
Status check_serves(const Errhandler& errhandler, Errhandler::Kind kind);

// Applies the error handler to a failed call and returns the code that the call returns: always the
// error's own, also after a program's handler has returned.
int raise(Comm* comm, const Status& status, const char* function);
int raise(Win* win, const Status& status, const char* function);
int raise(File* file, const Status& status, const char* function);
int raise(Session* session, const Status& status, const char* function);
// The handler of an object that the call was to make: it hears of a null handle.
int raise(const Errhandler& errhandler, const Status& status, const char* function);
int raise(std::nullptr_t, const Status& status, const char* function);

// "MPI_ERR_RANK" for a predefined class, "error class 16385" for others.
std::string class_name(int error_class);
// What MPI_Error_string says about a code.
std::string error_text(int code);
// The class of a code, predefined or user-defined; MPI_ERR_UNKNOWN for no code.
int class_of(int code);
bool is_error_code(int code);

}  // namespace gantry::mpi
