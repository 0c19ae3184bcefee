// SPDX-License-Identifier: BSD-3-Clause
//
// Process: the one object that is not an Engine's. It holds what the program may use
// before MPI_Init and after MPI_Finalize, and the memory of all handles. It is made at its first
// use and never destroyed, so that a handle can be judged at any time. A forked child finds
// `forked` set (no system call per MPI call) and does nothing with it.
#pragma once

#include "base/config.hpp"
#include "base/ledger.hpp"
#include "base/slab.hpp"
#include "mpi/attr/attribute.hpp"
#include "mpi/comm/comm.hpp"
#include "mpi/datatype/datatype.hpp"
#include "mpi/errhandler/errhandler.hpp"
#include "mpi/errhandler/error_codes.hpp"
#include "mpi/comm/group.hpp"
#include "mpi/info/info.hpp"
#include "mpi/coll/op.hpp"
#include "mpi/io/datarep.hpp"
#include "mpi/io/file.hpp"
#include "mpi/rma/win.hpp"
#include "mpi/session/session.hpp"

#include <atomic>
#include <iterator>
#include <memory>
#include <thread>
#include <vector>

namespace gantry::mpi {

class Boundary;
class Engine;
namespace tool {
class Tool;
}

struct FailedOn {
    Comm* comm = nullptr;
    File* file = nullptr;
};

struct Process {
    Process();
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    enum class Phase { before, running, finalized };
    // Whether the world model's MPI_Init has been called, and MPI_Finalize. Other threads may ask
    // at any time.
    std::atomic<Phase> phase{Phase::before};
    bool forked =
        false;  // this is a child made by fork(); set by the handler that Process() registers
    std::thread::id main_thread;
    int thread_level = MPI_THREAD_SINGLE;
    std::atomic<int> sessions_open{0};

    // What calls pass (mpi/engine/boundary.hpp): those that are legal at any time always, the others
    // unless they need not. Null in a forked child.
    Boundary* boundary_at_any_time;
    std::atomic<Boundary*> boundary;
    Boundary* boundary_of_parent = nullptr;  // of a forked child: used no more, and never destroyed
    bool stops_thread_at_exit = false;
    BothWays traffic_of_freed;              // communicators that are no more
    std::vector<config::Setting> settings;  // parameters written by MPI_T before there is an engine
    tool::Tool* tool = nullptr;             // what MPI_T handles; made at its first initialisation
    std::unique_ptr<Engine> engine;         // of MPI_Init and of all sessions
    Comm* world = nullptr;                  // null where MPI is not in use
    Comm* self = nullptr;
    Comm* parent = nullptr;  // of a job that was spawned, until it is freed
    // What the request worked on whose failure the running call is about to report (calls such as
    // MPI_Wait name no object).
    FailedOn failed_on;

    Slab<Comm> comms;
    Slab<Datatype> datatypes;
    Slab<Op> ops;
    Slab<Group> groups;
    Slab<Info> infos;
    Slab<Errhandler> errhandlers;
    Slab<Session> sessions;
    Slab<Message> messages;
    Slab<Win> wins;
    Slab<File> files;
    Keyvals keyvals;
    Datareps datareps;
    SendBuffer send_buffer;  // of MPI_Buffer_attach
    UserErrors user_errors;

    Datatype* predefined_datatypes[256] = {};
    std::vector<Datatype*> fortran_types;  // made by MPI_Type_create_f90_x
    Op* predefined_ops[kPredefinedOps] = {};
    Group* empty_group = nullptr;
    Info* environment = nullptr;  // MPI_INFO_ENV
    Errhandler* errors_are_fatal = nullptr;
    Errhandler* errors_abort = nullptr;
    Errhandler* errors_return = nullptr;
    Errhandler* initial_errhandler = nullptr;
    Errhandler* file_errhandler = nullptr;  // of MPI_FILE_NULL

    // What a predefined handle names; null: nothing.
    Datatype* predefined(MPI_Datatype handle) const {
        const auto index = reinterpret_cast<std::uintptr_t>(handle) - 0x200;
        return index < std::size(predefined_datatypes) ? predefined_datatypes[index] : nullptr;
    }
    Op* predefined(MPI_Op handle) const {
        const auto index = reinterpret_cast<std::uintptr_t>(handle) -
                           reinterpret_cast<std::uintptr_t>(MPI_OP_NULL);
        return index < std::size(predefined_ops) ? predefined_ops[index] : nullptr;
    }

    // Whether calls that need a running MPI may be made: by this process, between Init and Finalize
    // or while a session is open.
    bool running() const { return (phase == Phase::running || sessions_open > 0) && !forked; }
};

// Sees to it that there are MPI_COMM_WORLD and MPI_COMM_SELF.
Status make_world(Engine& engine);

// Always the same object: one look serves a whole function.
[[gnu::const]] Process& process();

}  // namespace gantry::mpi
