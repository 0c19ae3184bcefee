// SPDX-License-Identifier: BSD-3-Clause
//
// Error handlers and where failures end.
#include "mpi/errhandler.hpp"

#include "base/log.hpp"
#include "mpi/boundary.hpp"
#include "mpi/bodies.hpp"
#include "mpi/engine.hpp"
#include "mpi/process.hpp"
#include "mpi/text.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace gantry::mpi {
namespace {

// An exit code that a shell shows: 1 to 255.
int exit_code(int code) {
    return code > 0 && code < 256 ? code : 1;
}

std::string describe(const Comm* comm) {
    if (comm == nullptr) return {};
    return fmt::format("communicator {}, rank {} of {}",
                       comm->name.empty() ? "without a name" : comm->name, comm->rank(),
                       comm->size());
}

[[noreturn]] void end_job(const std::string& where, const Status& status, const char* function,
                          const char* handler) {
    Process& p = process();
    const std::string rank =
        p.engine != nullptr ? fmt::format("rank {}: ", p.engine->rank()) : std::string{};
    const std::string line = fmt::format(
        "gantry: {}{} failed: {}: {}{}{}{}\ngantry: {}the error handler is {}: the job ends\n",
        rank, function, class_name(class_of(status.error_class())), status.text(),
        where.empty() ? "" : " (", where, where.empty() ? "" : ")", rank, handler);
    std::fwrite(line.data(), 1, line.size(), stderr);
    std::fflush(stderr);
    const int code = exit_code(status.error_class());
    drop_boundary();
    if (p.engine != nullptr && !p.forked)
        p.engine->job().abort(
            code, fmt::format("{} failed: {}", function, class_name(status.error_class())));
    _exit(code);
}

// The predefined kinds; false when a program's function is to be called.
bool apply_predefined(const Errhandler& errhandler, const std::string& where, const Status& status,
                      const char* function) {
    remember_failure(status.error_class(), function, status.text());
    switch (errhandler.kind) {
        case Errhandler::Kind::fatal: end_job(where, status, function, "MPI_ERRORS_ARE_FATAL");
        case Errhandler::Kind::abort: end_job(where, status, function, "MPI_ERRORS_ABORT");
        case Errhandler::Kind::return_code:
            log::debug("mpi: {} returns {}: {}", function, class_name(status.error_class()),
                       status.text());
            return true;
        default: return false;
    }
}

Status no_memory() {
    return failure(MPI_ERR_NO_MEM, "out of memory for an error handler");
}

Status make(Errhandler::Kind kind, Errhandler** made, MPI_Errhandler* handle) {
    *made = create(process().errhandlers);
    if (*made == nullptr) return no_memory();
    (*made)->kind = kind;
    *handle = (*made)->handle;
    return success();
}

bool serves(const Errhandler& errhandler, Errhandler::Kind kind) {
    return errhandler.predefined || errhandler.kind == kind;
}

}  // namespace

void release(Errhandler* errhandler) {
    if (let_go(errhandler)) process().errhandlers.destroy(errhandler);
}

void assign(Errhandler*& slot, Errhandler* errhandler) {
    retain(errhandler);
    if (slot != nullptr) release(slot);
    slot = errhandler;
}

int raise(Comm* comm, const Status& status, const char* function) {
    if (comm == nullptr) return raise(nullptr, status, function);
    int code = status.error_class();
    const Errhandler& errhandler = *comm->errhandler;
    if (apply_predefined(errhandler, describe(comm), status, function)) return code;
    if (errhandler.comm_function != nullptr) {
        MPI_Comm handle = comm->handle;
        int given = code;
        errhandler.comm_function(&handle, &given);
    }
    return code;
}

int raise(Win* win, const Status& status, const char* function) {
    if (win == nullptr || win->errhandler == nullptr) return raise(nullptr, status, function);
    int code = status.error_class();
    if (apply_predefined(*win->errhandler, "window", status, function)) return code;
    MPI_Win handle = win->handle;
    int given = code;
    if (win->errhandler->win_function != nullptr) win->errhandler->win_function(&handle, &given);
    return code;
}

int raise(File* file, const Status& status, const char* function) {
    // Files begin with MPI_ERRORS_RETURN, and so do calls that have no file yet (MPI 5.0
    // section 14.7).
    if (file == nullptr || file->errhandler == nullptr) return status.error_class();
    int code = status.error_class();
    if (apply_predefined(*file->errhandler, "file", status, function)) return code;
    MPI_File handle = file->handle;
    int given = code;
    if (file->errhandler->file_function != nullptr)
        file->errhandler->file_function(&handle, &given);
    return code;
}

int raise(Session* session, const Status& status, const char* function) {
    if (session == nullptr) return raise(nullptr, status, function);
    int code = status.error_class();
    if (apply_predefined(*session->errhandler, "session", status, function)) return code;
    MPI_Session handle = session->handle;
    int given = code;
    if (session->errhandler->session_function != nullptr)
        session->errhandler->session_function(&handle, &given);
    return code;
}

int raise(std::nullptr_t, const Status& status, const char* function) {
    Process& p = process();
    if (Comm* failed_on = std::exchange(p.failed_on, nullptr);
        failed_on != nullptr && p.comms.find(failed_on) != nullptr)
        return raise(failed_on, status, function);
    if (p.running() && p.self != nullptr) {
        // Programs older than MPI 4.0 set the handler of MPI_COMM_WORLD for this; it counts while
        // nobody has set MPI_COMM_SELF's.
        const bool only_world_set = p.self->errhandler == p.initial_errhandler &&
                                    p.world->errhandler != p.initial_errhandler;
        return raise(only_world_set ? p.world : p.self, status, function);
    }
    const std::string where = p.phase == Process::Phase::finalized ? "after MPI_Finalize"
                              : p.phase == Process::Phase::before  ? "before MPI_Init"
                                                                   : "";
    apply_predefined(*p.initial_errhandler, where, status, function);
    return status.error_class();
}

Status comm_create_errhandler(MPI_Comm_errhandler_function* comm_errhandler_fn,
                              MPI_Errhandler* errhandler) {
    Errhandler* made = nullptr;
    GANTRY_TRY(make(Errhandler::Kind::comm, &made, errhandler));
    made->comm_function = comm_errhandler_fn;
    return success();
}

Status win_create_errhandler(MPI_Win_errhandler_function* win_errhandler_fn,
                             MPI_Errhandler* errhandler) {
    Errhandler* made = nullptr;
    GANTRY_TRY(make(Errhandler::Kind::win, &made, errhandler));
    made->win_function = win_errhandler_fn;
    return success();
}

Status file_create_errhandler(MPI_File_errhandler_function* file_errhandler_fn,
                              MPI_Errhandler* errhandler) {
    Errhandler* made = nullptr;
    GANTRY_TRY(make(Errhandler::Kind::file, &made, errhandler));
    made->file_function = file_errhandler_fn;
    return success();
}

Status session_create_errhandler(MPI_Session_errhandler_function* session_errhandler_fn,
                                 MPI_Errhandler* errhandler) {
    Errhandler* made = nullptr;
    GANTRY_TRY(make(Errhandler::Kind::session, &made, errhandler));
    made->session_function = session_errhandler_fn;
    return success();
}

Status errhandler_free(MPI_Errhandler* errhandler) {
    // Freeing a predefined one changes nothing but the program's variable.
    Errhandler* object = find(*errhandler);
    if (!object->predefined) release(take_handle(object));
    *errhandler = MPI_ERRHANDLER_NULL;
    return success();
}

Status comm_set_errhandler(Comm& comm, Errhandler& errhandler) {
    if (!serves(errhandler, Errhandler::Kind::comm))
        return failure(MPI_ERR_ARG,
                       "this error handler was not made by MPI_Comm_create_errhandler; a "
                       "communicator cannot use it");
    assign(comm.errhandler, &errhandler);
    return success();
}

Status comm_get_errhandler(Comm& comm, MPI_Errhandler* errhandler) {
    *errhandler = give_handle(comm.errhandler);
    return success();
}

Status comm_call_errhandler(Comm& comm, int errorcode) {
    raise(&comm, Status::make(errorcode, error_text(errorcode)), "MPI_Comm_call_errhandler");
    return success();
}

Status session_set_errhandler(Session& session, Errhandler& errhandler) {
    if (!serves(errhandler, Errhandler::Kind::session))
        return failure(MPI_ERR_ARG,
                       "this error handler was not made by MPI_Session_create_errhandler; a "
                       "session cannot use it");
    assign(session.errhandler, &errhandler);
    return success();
}

Status session_get_errhandler(Session& session, MPI_Errhandler* errhandler) {
    *errhandler = give_handle(session.errhandler);
    return success();
}

Status session_call_errhandler(Session& session, int errorcode) {
    raise(&session, Status::make(errorcode, error_text(errorcode)), "MPI_Session_call_errhandler");
    return success();
}

}  // namespace gantry::mpi
