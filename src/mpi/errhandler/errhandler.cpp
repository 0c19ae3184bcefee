// SPDX-License-Identifier: BSD-3-Clause
//
// Error handlers and where failures end.
#include "mpi/errhandler/errhandler.hpp"

#include "base/log.hpp"
#include "mpi/engine/boundary.hpp"
#include "mpi/bodies.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/engine/text.hpp"

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
    const std::string line = fmt::format("gantry: {}{} failed: {}: {} ({}{}error handler {})\n",
                                         rank, function, class_name(class_of(status.error_class())),
                                         status.text(), where, where.empty() ? "" : "; ", handler);
    std::fwrite(line.data(), 1, line.size(), stderr);
    // What the program has printed is not lost. What a forked child holds of it is its parent's.
    std::fflush(p.forked ? stderr : nullptr);
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

template <class Function>
Status make(Errhandler::Kind kind, Function* Errhandler::*field, Function* function,
            MPI_Errhandler* handle, void* extra_state = nullptr) {
    Errhandler* made = create(process().errhandlers);
    if (made == nullptr) return no_memory();
    made->kind = kind;
    made->*field = function;
    made->extra_state = extra_state;
    *handle = made->handle;
    return success();
}

// The function of the program's own handler.
void call_program(const Errhandler& errhandler, MPI_Comm comm, int code) {
    if (errhandler.comm_function_x != nullptr)
        errhandler.comm_function_x(comm, code, errhandler.extra_state);
    else if (errhandler.comm_function != nullptr)
        errhandler.comm_function(&comm, &code);
}
void call_program(const Errhandler& errhandler, MPI_Win win, int code) {
    if (errhandler.win_function_x != nullptr)
        errhandler.win_function_x(win, code, errhandler.extra_state);
    else if (errhandler.win_function != nullptr)
        errhandler.win_function(&win, &code);
}
void call_program(const Errhandler& errhandler, MPI_File file, int& code) {
    if (errhandler.file_function_x != nullptr)
        errhandler.file_function_x(file, code, errhandler.extra_state);
    else if (errhandler.file_function != nullptr)
        errhandler.file_function(&file, &code);
}
void call_program(const Errhandler& errhandler, MPI_Session session, int code) {
    if (errhandler.session_function_x != nullptr)
        errhandler.session_function_x(session, code, errhandler.extra_state);
    else if (errhandler.session_function != nullptr)
        errhandler.session_function(&session, &code);
}

template <class Handle>
int apply(const Errhandler& errhandler, Handle handle, const std::string& where,
          const Status& status, const char* function) {
    const int code = status.error_class();
    if (apply_predefined(errhandler, where, status, function)) return code;
    // By value: it may be freed meanwhile.
    const Errhandler called = errhandler;
    const LetOthersIn program;
    // What a handler of files makes of the code is returned, as all libraries do that take ROMIO's.
    int told = code;
    call_program(called, handle, told);
    return std::is_same_v<Handle, MPI_File> ? told : code;
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

Status check_serves(const Errhandler& errhandler, Errhandler::Kind kind) {
    if (errhandler.predefined || errhandler.kind == kind) return success();
    const char *maker = "Comm", *noun = "communicator";
    switch (kind) {
        case Errhandler::Kind::session: maker = "Session", noun = "session"; break;
        case Errhandler::Kind::file: maker = "File", noun = "file"; break;
        case Errhandler::Kind::win: maker = "Win", noun = "window"; break;
        default: break;
    }
    return failure(
        MPI_ERR_ARG,
        "this error handler was not made by MPI_{}_create_errhandler; a {} cannot use it", maker,
        noun);
}

int raise(Comm* comm, const Status& status, const char* function) {
    if (comm == nullptr) return raise(nullptr, status, function);
    return apply(*comm->errhandler, comm->handle, describe(comm), status, function);
}

int raise(Win* win, const Status& status, const char* function) {
    if (win == nullptr || win->errhandler == nullptr) return raise(nullptr, status, function);
    return apply(*win->errhandler, win->handle, "window", status, function);
}

int raise(File* file, const Status& status, const char* function) {
    Process& p = process();
    if (file != nullptr && file->errhandler != nullptr)
        return apply(*file->errhandler, file->handle, "file", status, function);
    if (!p.running()) return raise(nullptr, status, function);
    // Calls that have no file yet, or none that lives (MPI 5.0 section 14.7).
    return apply(*p.file_errhandler, MPI_FILE_NULL, "MPI_FILE_NULL", status, function);
}

int raise(Session* session, const Status& status, const char* function) {
    if (session == nullptr) return raise(nullptr, status, function);
    return apply(*session->errhandler, session->handle, "session", status, function);
}

int raise(const Errhandler& errhandler, const Status& status, const char* function) {
    if (errhandler.kind == Errhandler::Kind::session)
        return apply(errhandler, MPI_SESSION_NULL, {}, status, function);
    return apply(errhandler, MPI_COMM_NULL, {}, status, function);
}

int raise(std::nullptr_t, const Status& status, const char* function) {
    Process& p = process();
    const FailedOn failed_on = std::exchange(p.failed_on, {});
    if (failed_on.comm != nullptr && p.comms.find(failed_on.comm) != nullptr)
        return raise(failed_on.comm, status, function);
    if (failed_on.file != nullptr && p.files.find(failed_on.file) != nullptr)
        return raise(failed_on.file, status, function);
    if (p.running() && p.self != nullptr) {
        // Programs older than MPI 4.0 set the handler of MPI_COMM_WORLD for this; it counts while
        // nobody has set MPI_COMM_SELF's.
        const bool only_world_set = p.self->errhandler == p.initial_errhandler &&
                                    p.world->errhandler != p.initial_errhandler;
        const Comm& chosen = only_world_set ? *p.world : *p.self;
        return apply(*chosen.errhandler, chosen.handle,
                     fmt::format("no communicator, so {}'s counts", chosen.name), status, function);
    }
    const std::string where = p.phase == Process::Phase::finalized ? "after MPI_Finalize"
                              : p.phase == Process::Phase::before  ? "before MPI_Init"
                                                                   : "";
    apply_predefined(*p.initial_errhandler, where, status, function);
    return status.error_class();
}

Status comm_create_errhandler(MPI_Comm_errhandler_function* comm_errhandler_fn,
                              MPI_Errhandler* errhandler) {
    return make(Errhandler::Kind::comm, &Errhandler::comm_function, comm_errhandler_fn, errhandler);
}

Status win_create_errhandler(MPI_Win_errhandler_function* win_errhandler_fn,
                             MPI_Errhandler* errhandler) {
    return make(Errhandler::Kind::win, &Errhandler::win_function, win_errhandler_fn, errhandler);
}

Status file_create_errhandler(MPI_File_errhandler_function* file_errhandler_fn,
                              MPI_Errhandler* errhandler) {
    return make(Errhandler::Kind::file, &Errhandler::file_function, file_errhandler_fn, errhandler);
}

Status session_create_errhandler(MPI_Session_errhandler_function* session_errhandler_fn,
                                 MPI_Errhandler* errhandler) {
    return make(Errhandler::Kind::session, &Errhandler::session_function, session_errhandler_fn,
                errhandler);
}

Status comm_create_errhandler_x(MPIX_Comm_errhandler_function_x* function, void* extra_state,
                                MPI_Errhandler* errhandler) {
    return make(Errhandler::Kind::comm, &Errhandler::comm_function_x, function, errhandler,
                extra_state);
}

Status win_create_errhandler_x(MPIX_Win_errhandler_function_x* function, void* extra_state,
                               MPI_Errhandler* errhandler) {
    return make(Errhandler::Kind::win, &Errhandler::win_function_x, function, errhandler,
                extra_state);
}

Status file_create_errhandler_x(MPIX_File_errhandler_function_x* function, void* extra_state,
                                MPI_Errhandler* errhandler) {
    return make(Errhandler::Kind::file, &Errhandler::file_function_x, function, errhandler,
                extra_state);
}

Status session_create_errhandler_x(MPIX_Session_errhandler_function_x* function, void* extra_state,
                                   MPI_Errhandler* errhandler) {
    return make(Errhandler::Kind::session, &Errhandler::session_function_x, function, errhandler,
                extra_state);
}

Status errhandler_free(MPI_Errhandler* errhandler) {
    // Freeing a predefined one changes nothing but the program's variable.
    Errhandler* object = find(*errhandler);
    if (!object->predefined) release(take_handle(object));
    *errhandler = MPI_ERRHANDLER_NULL;
    return success();
}

Status comm_set_errhandler(Comm& comm, Errhandler& errhandler) {
    GANTRY_TRY(check_serves(errhandler, Errhandler::Kind::comm));
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

namespace {

// Where the handler of that file is kept; of MPI_FILE_NULL, what new files begin with.
Errhandler*& handler_of(MPI_File file) {
    return file == MPI_FILE_NULL ? process().file_errhandler : find(file)->errhandler;
}

}  // namespace

Status file_set_errhandler(MPI_File file, Errhandler& errhandler) {
    GANTRY_TRY(check_serves(errhandler, Errhandler::Kind::file));
    assign(handler_of(file), &errhandler);
    return success();
}

Status file_get_errhandler(MPI_File file, MPI_Errhandler* errhandler) {
    *errhandler = give_handle(handler_of(file));
    return success();
}

Status file_call_errhandler(MPI_File fh, int errorcode) {
    raise(find(fh), Status::make(errorcode, error_text(errorcode)), "MPI_File_call_errhandler");
    return success();
}

Status win_set_errhandler(Win& win, Errhandler& errhandler) {
    GANTRY_TRY(check_serves(errhandler, Errhandler::Kind::win));
    assign(win.errhandler, &errhandler);
    return success();
}

Status win_get_errhandler(Win& win, MPI_Errhandler* errhandler) {
    *errhandler = give_handle(win.errhandler);
    return success();
}

Status win_call_errhandler(Win& win, int errorcode) {
    raise(&win, Status::make(errorcode, error_text(errorcode)), "MPI_Win_call_errhandler");
    return success();
}

Status session_set_errhandler(Session& session, Errhandler& errhandler) {
    GANTRY_TRY(check_serves(errhandler, Errhandler::Kind::session));
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
