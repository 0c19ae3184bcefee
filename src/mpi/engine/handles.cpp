// SPDX-License-Identifier: BSD-3-Clause
//
// Judging handles, and their integer form for Fortran and for MPI_x_toint: the constant itself for
// a predefined handle, else 4096 plus the number of the object's slot.
#include "mpi/engine/handles.hpp"

#include "mpi/bodies.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"

namespace gantry::mpi {
namespace {

constexpr int kFirstInteger = static_cast<int>(kFirstPointer);

std::uintptr_t number(const void* handle) {
    return reinterpret_cast<std::uintptr_t>(handle);
}

template <class Handle, class T>
int integer_of(const Slab<T>& slab, Handle handle) {
    if (is_predefined(handle)) return static_cast<int>(number(handle));
    const T* object = find_in(slab, handle);
    return object != nullptr ? kFirstInteger + static_cast<int>(slab.index(object)) : -1;
}

template <class Handle, class T>
Handle handle_of(const Slab<T>& slab, int integer, Handle null) {
    if (integer < 0) return null;
    if (integer < kFirstInteger)
        return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(integer));
    const T* object = slab.at(static_cast<std::uint32_t>(integer - kFirstInteger));
    return object != nullptr && object->valid() && !object->predefined ? object->handle : null;
}

}  // namespace

Comm* find(MPI_Comm handle) {
    Process& p = process();
    if (handle == MPI_COMM_WORLD) return p.world;
    if (handle == MPI_COMM_SELF) return p.self;
    return is_predefined(handle) ? nullptr : find_in(p.comms, handle);
}

Datatype* find(MPI_Datatype handle) {
    Process& p = process();
    return is_predefined(handle) ? p.predefined(handle) : find_in(p.datatypes, handle);
}

Op* find(MPI_Op handle) {
    Process& p = process();
    return is_predefined(handle) ? p.predefined(handle) : find_in(p.ops, handle);
}

Group* find(MPI_Group handle) {
    Process& p = process();
    if (handle == MPI_GROUP_EMPTY) return p.empty_group;
    return is_predefined(handle) ? nullptr : find_in(p.groups, handle);
}

Info* find(MPI_Info handle) {
    Process& p = process();
    if (handle == MPI_INFO_ENV) return p.environment;
    return is_predefined(handle) ? nullptr : find_in(p.infos, handle);
}

Errhandler* find(MPI_Errhandler handle) {
    Process& p = process();
    if (handle == MPI_ERRORS_ARE_FATAL) return p.errors_are_fatal;
    if (handle == MPI_ERRORS_ABORT) return p.errors_abort;
    if (handle == MPI_ERRORS_RETURN) return p.errors_return;
    return is_predefined(handle) ? nullptr : find_in(p.errhandlers, handle);
}

Session* find(MPI_Session handle) {
    return is_predefined(handle) ? nullptr : find_in(process().sessions, handle);
}
Message* find(MPI_Message handle) {
    return is_predefined(handle) ? nullptr : find_in(process().messages, handle);
}
Win* find(MPI_Win handle) {
    return is_predefined(handle) ? nullptr : find_in(process().wins, handle);
}
File* find(MPI_File handle) {
    return is_predefined(handle) ? nullptr : find_in(process().files, handle);
}

Request* find(MPI_Request handle) {
    Engine* engine = process().engine.get();
    if (is_predefined(handle) || engine == nullptr || !engine->started()) return nullptr;
    Request* request = engine->messenger().find(handle);
    // Without an owner: our own, or one that waits in the submission queue to be posted again.
    return request != nullptr && request->owner != nullptr && !request->detached ? request
                                                                                 : nullptr;
}

int comm_toint(MPI_Comm handle) {
    return integer_of(process().comms, handle);
}
MPI_Comm comm_fromint(int integer) {
    return handle_of(process().comms, integer, MPI_COMM_NULL);
}
int type_toint(MPI_Datatype handle) {
    return integer_of(process().datatypes, handle);
}
MPI_Datatype type_fromint(int integer) {
    return handle_of(process().datatypes, integer, MPI_DATATYPE_NULL);
}
int op_toint(MPI_Op handle) {
    return integer_of(process().ops, handle);
}
MPI_Op op_fromint(int integer) {
    return handle_of(process().ops, integer, MPI_OP_NULL);
}
int group_toint(MPI_Group handle) {
    return integer_of(process().groups, handle);
}
MPI_Group group_fromint(int integer) {
    return handle_of(process().groups, integer, MPI_GROUP_NULL);
}
int info_toint(MPI_Info handle) {
    return integer_of(process().infos, handle);
}
MPI_Info info_fromint(int integer) {
    return handle_of(process().infos, integer, MPI_INFO_NULL);
}
int errhandler_toint(MPI_Errhandler handle) {
    return integer_of(process().errhandlers, handle);
}
MPI_Errhandler errhandler_fromint(int integer) {
    return handle_of(process().errhandlers, integer, MPI_ERRHANDLER_NULL);
}
int session_toint(MPI_Session handle) {
    return integer_of(process().sessions, handle);
}
MPI_Session session_fromint(int integer) {
    return handle_of(process().sessions, integer, MPI_SESSION_NULL);
}
int message_toint(MPI_Message handle) {
    return integer_of(process().messages, handle);
}
MPI_Message message_fromint(int integer) {
    return handle_of(process().messages, integer, MPI_MESSAGE_NULL);
}
int win_toint(MPI_Win handle) {
    return integer_of(process().wins, handle);
}
MPI_Win win_fromint(int integer) {
    return handle_of(process().wins, integer, MPI_WIN_NULL);
}
int file_toint(MPI_File handle) {
    return integer_of(process().files, handle);
}
MPI_File file_fromint(int integer) {
    return handle_of(process().files, integer, MPI_FILE_NULL);
}

int request_toint(MPI_Request handle) {
    if (is_predefined(handle)) return static_cast<int>(number(handle));
    const Request* request = find(handle);
    return request != nullptr
               ? kFirstInteger + static_cast<int>(process().engine->messenger().index(request))
               : -1;
}
MPI_Request request_fromint(int integer) {
    if (integer < 0) return MPI_REQUEST_NULL;
    if (integer < kFirstInteger)
        return reinterpret_cast<MPI_Request>(static_cast<std::uintptr_t>(integer));
    Engine* engine = process().engine.get();
    if (engine == nullptr || !engine->started()) return MPI_REQUEST_NULL;
    Request* request = engine->messenger().at(static_cast<std::uint32_t>(integer - kFirstInteger));
    return request != nullptr && request->owner != nullptr ? reinterpret_cast<MPI_Request>(request)
                                                           : MPI_REQUEST_NULL;
}

}  // namespace gantry::mpi
