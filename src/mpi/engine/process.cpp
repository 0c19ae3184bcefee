// SPDX-License-Identifier: BSD-3-Clause
//
// Making the process object: predefined handles' tables, and the three predefined error handlers.
#include "mpi/engine/process.hpp"

#include "mpi/engine/boundary.hpp"
#include "mpi/engine/engine.hpp"

#include <pthread.h>

namespace gantry::mpi {
namespace {

Errhandler* errhandler_of(Slab<Errhandler>& slab, Errhandler::Kind kind, MPI_Errhandler handle) {
    Errhandler* errhandler = slab.create();
    GANTRY_ASSERT(errhandler != nullptr);
    errhandler->kind = kind;
    errhandler->handle = handle;
    errhandler->predefined = true;
    return errhandler;
}

}  // namespace

Process::Process()
    : main_thread(std::this_thread::get_id()),
      boundary_at_any_time(new Boundary),
      boundary(boundary_at_any_time) {
    pthread_atfork(nullptr, nullptr, [] {
        Process& child = process();
        child.forked = true;
        // Threads stayed with the parent, perhaps inside.
        child.boundary_of_parent = child.boundary_at_any_time;
        child.boundary = child.boundary_at_any_time = nullptr;
    });
    fill_predefined(datatypes, predefined_datatypes);
    fill_predefined(ops, predefined_ops);
    errors_are_fatal = errhandler_of(errhandlers, Errhandler::Kind::fatal, MPI_ERRORS_ARE_FATAL);
    errors_abort = errhandler_of(errhandlers, Errhandler::Kind::abort, MPI_ERRORS_ABORT);
    errors_return = errhandler_of(errhandlers, Errhandler::Kind::return_code, MPI_ERRORS_RETURN);
    initial_errhandler = errors_are_fatal;
    file_errhandler = errors_return;
    empty_group = groups.create();
    environment = infos.create();
    GANTRY_ASSERT(empty_group != nullptr && environment != nullptr);
    empty_group->handle = MPI_GROUP_EMPTY;
    empty_group->predefined = true;
    environment->handle = MPI_INFO_ENV;
    environment->predefined = environment->read_only = true;
    set_pair(environment->pairs, kMemoryKindsKey, kMemoryKinds);
}

Process& process() {
    static Process* const the = new Process;
    return *the;
}

}  // namespace gantry::mpi
