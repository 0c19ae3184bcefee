// SPDX-License-Identifier: BSD-3-Clause
//
// From ABI handles to objects and back. A predefined handle is a small constant that a
// table resolves; any other is the address of an object in one of the Process's slabs. `find`
// judges whatever a program passes: null, freed, foreign and garbage handles all give nullptr,
// without a look at memory that is not ours.
#pragma once

#include <mpi.h>

#include <cstdint>

namespace gantry::p2p {
class Request;
}

namespace gantry::mpi {

struct Comm;
struct Datatype;
struct Op;
struct Group;
struct Info;
struct Errhandler;
struct Session;
struct Message;
struct Win;
struct File;
using Request = p2p::Request;

// Constants of the ABI lie in the zero page; everything above is a pointer.
inline constexpr std::uintptr_t kFirstPointer = 4096;
template <class Handle>
bool is_predefined(Handle handle) {
    return reinterpret_cast<std::uintptr_t>(handle) < kFirstPointer;
}

Comm* find(MPI_Comm handle);
Datatype* find(MPI_Datatype handle);
Op* find(MPI_Op handle);
Group* find(MPI_Group handle);
Info* find(MPI_Info handle);
Errhandler* find(MPI_Errhandler handle);
Session* find(MPI_Session handle);
Message* find(MPI_Message handle);
Win* find(MPI_Win handle);
File* find(MPI_File handle);
Request* find(MPI_Request handle);

}  // namespace gantry::mpi
