// SPDX-License-Identifier: BSD-3-Clause
//
// The functions of a program that the library calls, with the other ABI's types.
#pragma once

#include "theirs.hpp"

namespace gantry::personality::theirs {

using User_function = void(void* in, void* inout, int* length, Datatype* datatype);
using User_function_c = void(void* in, void* inout, MPI_Count* length, Datatype* datatype);

template <class Handle>
using Copy = int(Handle, int keyval, void* extra_state, void* in, void* out, int* flag);
template <class Handle>
using Delete = int(Handle, int keyval, void* value, void* extra_state);
using Copy_function = Copy<Comm>;
using Delete_function = Delete<Comm>;
using Comm_copy_attr_function = Copy<Comm>;
using Comm_delete_attr_function = Delete<Comm>;
using Type_copy_attr_function = Copy<Datatype>;
using Type_delete_attr_function = Delete<Datatype>;
using Win_copy_attr_function = Copy<Win>;
using Win_delete_attr_function = Delete<Win>;

template <class Handle>
using Errhandler_function = void(Handle*, int* code, ...);
using Comm_errhandler_function = Errhandler_function<Comm>;
using Win_errhandler_function = Errhandler_function<Win>;
using File_errhandler_function = Errhandler_function<File>;
using Session_errhandler_function = Errhandler_function<Session>;

using Grequest_query_function = int(void* extra_state, Status* status);
using Grequest_free_function = int(void* extra_state);
using Grequest_cancel_function = int(void* extra_state, int complete);

using Datarep_extent_function = int(Datatype, MPI_Aint* extent, void* extra_state);
using Datarep_conversion_function = int(void* memory, Datatype, int count, void* file, MPI_Offset,
                                        void* extra_state);
using Datarep_conversion_function_c = int(void* memory, Datatype, MPI_Count count, void* file,
                                          MPI_Offset, void* extra_state);

}  // namespace gantry::personality::theirs
