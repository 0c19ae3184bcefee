// SPDX-License-Identifier: BSD-3-Clause
//
// Error classes, codes and what MPI_Error_string says about them.
#include "mpi/errhandler/error_codes.hpp"

#include "mpi/bodies.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/engine/text.hpp"

#include <mpi-ext.h>

#include <functional>

namespace gantry::mpi {
namespace {

struct ClassRow {
    int number;
    const char* name;
    const char* text;
};

#define ROW(name, text) \
    { name, #name, text }
const ClassRow kClasses[] = {
    ROW(MPI_SUCCESS, "no error"),
    ROW(MPI_ERR_BUFFER, "invalid buffer pointer"),
    ROW(MPI_ERR_COUNT, "invalid count argument"),
    ROW(MPI_ERR_TYPE, "invalid datatype argument"),
    ROW(MPI_ERR_TAG, "invalid tag argument"),
    ROW(MPI_ERR_COMM, "invalid communicator"),
    ROW(MPI_ERR_RANK, "invalid rank"),
    ROW(MPI_ERR_REQUEST, "invalid request"),
    ROW(MPI_ERR_ROOT, "invalid root"),
    ROW(MPI_ERR_GROUP, "invalid group"),
    ROW(MPI_ERR_OP, "invalid reduction operation"),
    ROW(MPI_ERR_TOPOLOGY, "invalid topology"),
    ROW(MPI_ERR_DIMS, "invalid dimension argument"),
    ROW(MPI_ERR_ARG, "invalid argument"),
    ROW(MPI_ERR_UNKNOWN, "unknown error"),
    ROW(MPI_ERR_TRUNCATE, "message longer than the receive buffer"),
    ROW(MPI_ERR_OTHER, "known error not in this list; the error handler's message says more"),
    ROW(MPI_ERR_INTERN, "internal error of the MPI library"),
    ROW(MPI_ERR_PENDING, "operation neither failed nor complete"),
    ROW(MPI_ERR_IN_STATUS, "error code is in the statuses"),
    ROW(MPI_ERR_ACCESS, "permission denied"),
    ROW(MPI_ERR_AMODE, "invalid access mode of a file"),
    ROW(MPI_ERR_ASSERT, "invalid assertion argument"),
    ROW(MPI_ERR_BAD_FILE, "invalid file name"),
    ROW(MPI_ERR_BASE, "invalid base address"),
    ROW(MPI_ERR_CONVERSION, "error in a data conversion function"),
    ROW(MPI_ERR_DISP, "invalid displacement"),
    ROW(MPI_ERR_DUP_DATAREP, "data representation is defined already"),
    ROW(MPI_ERR_FILE_EXISTS, "file exists"),
    ROW(MPI_ERR_FILE_IN_USE, "file is in use"),
    ROW(MPI_ERR_FILE, "invalid file handle"),
    ROW(MPI_ERR_INFO_KEY, "invalid info key"),
    ROW(MPI_ERR_INFO_NOKEY, "info key is not set"),
    ROW(MPI_ERR_INFO_VALUE, "invalid info value"),
    ROW(MPI_ERR_INFO, "invalid info object"),
    ROW(MPI_ERR_IO, "input or output error"),
    ROW(MPI_ERR_KEYVAL, "invalid attribute key"),
    ROW(MPI_ERR_LOCKTYPE, "invalid lock type"),
    ROW(MPI_ERR_NAME, "service name is not published"),
    ROW(MPI_ERR_NO_MEM, "out of memory"),
    ROW(MPI_ERR_NOT_SAME, "arguments differ between processes of a collective call"),
    ROW(MPI_ERR_NO_SPACE, "not enough space"),
    ROW(MPI_ERR_NO_SUCH_FILE, "file does not exist"),
    ROW(MPI_ERR_PORT, "invalid port name"),
    ROW(MPI_ERR_QUOTA, "quota exceeded"),
    ROW(MPI_ERR_READ_ONLY, "file or file system is read-only"),
    ROW(MPI_ERR_RMA_ATTACH, "memory cannot be attached to the window"),
    ROW(MPI_ERR_RMA_CONFLICT, "conflicting accesses to a window"),
    ROW(MPI_ERR_RMA_RANGE, "target memory is not part of the window"),
    ROW(MPI_ERR_RMA_SHARED, "memory cannot be shared"),
    ROW(MPI_ERR_RMA_SYNC, "wrong synchronisation of one-sided calls"),
    ROW(MPI_ERR_SERVICE, "service cannot be published"),
    ROW(MPI_ERR_SIZE, "invalid size argument"),
    ROW(MPI_ERR_SPAWN, "processes cannot be spawned"),
    ROW(MPI_ERR_UNSUPPORTED_DATAREP, "unsupported data representation"),
    ROW(MPI_ERR_UNSUPPORTED_OPERATION, "operation is not supported"),
    ROW(MPI_ERR_WIN, "invalid window"),
    ROW(MPI_ERR_RMA_FLAVOR, "window has the wrong flavor"),
    ROW(MPI_ERR_PROC_ABORTED, "a peer process has ended (MPIX_ERR_PROC_FAILED)"),
    ROW(MPIX_ERR_PROC_FAILED_PENDING, "a process has ended that this receive might be from"),
    ROW(MPIX_ERR_REVOKED, "the communicator is revoked"),
    ROW(MPI_ERR_VALUE_TOO_LARGE, "value does not fit its type"),
    ROW(MPI_ERR_SESSION, "invalid session"),
    ROW(MPI_ERR_ERRHANDLER, "invalid error handler"),
    ROW(MPI_ERR_ABI, "error in the ABI's own functions"),
    ROW(MPI_T_ERR_CANNOT_INIT, "the tool interface cannot be initialised now"),
    ROW(MPI_T_ERR_NOT_ACCESSIBLE, "tool interface: not accessible"),
    ROW(MPI_T_ERR_NOT_INITIALIZED, "the tool interface is not initialised"),
    ROW(MPI_T_ERR_NOT_SUPPORTED, "tool interface: not supported"),
    ROW(MPI_T_ERR_MEMORY, "tool interface: out of memory"),
    ROW(MPI_T_ERR_INVALID, "tool interface: invalid argument"),
    ROW(MPI_T_ERR_INVALID_INDEX, "tool interface: invalid index"),
    ROW(MPI_T_ERR_INVALID_ITEM, "tool interface: invalid item"),
    ROW(MPI_T_ERR_INVALID_SESSION, "tool interface: invalid session"),
    ROW(MPI_T_ERR_INVALID_HANDLE, "tool interface: invalid handle"),
    ROW(MPI_T_ERR_INVALID_NAME, "tool interface: invalid name"),
    ROW(MPI_T_ERR_OUT_OF_HANDLES, "tool interface: no more handles"),
    ROW(MPI_T_ERR_OUT_OF_SESSIONS, "tool interface: no more sessions"),
    ROW(MPI_T_ERR_CVAR_SET_NOT_NOW, "control variable cannot be set now"),
    ROW(MPI_T_ERR_CVAR_SET_NEVER, "control variable cannot be set"),
    ROW(MPI_T_ERR_PVAR_NO_WRITE, "performance variable cannot be written"),
    ROW(MPI_T_ERR_PVAR_NO_STARTSTOP, "performance variable cannot be started or stopped"),
    ROW(MPI_T_ERR_PVAR_NO_ATOMIC, "performance variable cannot be read and reset at once"),
};
#undef ROW

const ClassRow* row_of(int code) {
    for (const ClassRow& row : kClasses)
        if (row.number == code) return &row;
    return nullptr;
}

UserErrors& user_errors() {
    return process().user_errors;
}

// How calls of this thread failed, by class: what another thread does between a call and the
// question about it changes nothing.
thread_local std::map<int, std::string> latest_of_thread;

// The latest failure of a class in words, this thread's if it had one; else null.
const std::string* latest(int error_class) {
    for (const auto& texts : {std::cref(latest_of_thread), std::cref(user_errors().latest)})
        if (const auto found = texts.get().find(error_class); found != texts.get().end())
            return &found->second;
    return nullptr;
}

UserError* user_error(int code) {
    const auto found = user_errors().codes.find(code);
    return found != user_errors().codes.end() ? &found->second : nullptr;
}

Status unknown(int code) {
    return failure(MPI_ERR_ARG, "{} is no error class or code of MPI or of this program", code);
}

Status user_only(int code) {
    if (code <= MPI_ERR_LASTCODE)
        return failure(MPI_ERR_ARG,
                       "error code {} is predefined; only those of MPI_Add_error_class and _code "
                       "can be changed",
                       code);
    return unknown(code);
}

int highest() {
    const auto& codes = user_errors().codes;
    return codes.empty() ? static_cast<int>(MPI_ERR_LASTCODE) : codes.rbegin()->first;
}

int add(int error_class) {
    UserErrors& errors = user_errors();
    const int code = highest() + 1;
    errors.codes[code] = UserError{error_class > 0 ? error_class : code, {}};
    errors.last_used = code;
    return code;
}

Status remove(int code) {
    user_errors().codes.erase(code);
    user_errors().last_used = highest();
    return success();
}

}  // namespace

UserErrors::UserErrors() : last_used(MPI_ERR_LASTCODE) {}

void remember_failure(int error_class, const char* function, std::string_view text) {
    // A program's own code has only the program's words.
    if (row_of(error_class) == nullptr) return;
    user_errors().latest[error_class] = latest_of_thread[error_class] =
        fmt::format("{}: {}", function, text);
}

bool is_error_code(int code) {
    return row_of(code) != nullptr || user_error(code) != nullptr;
}

int class_of(int code) {
    if (row_of(code) != nullptr) return code;
    const UserError* error = user_error(code);
    return error != nullptr ? error->error_class : static_cast<int>(MPI_ERR_UNKNOWN);
}

std::string class_name(int error_class) {
    const ClassRow* row = row_of(error_class);
    return row != nullptr ? row->name : fmt::format("error class {}", error_class);
}

std::string error_text(int code) {
    if (const ClassRow* row = row_of(code)) return fmt::format("{}: {}", row->name, row->text);
    const UserError* error = user_error(code);
    return error != nullptr ? error->text : fmt::format("{} is no error code", code);
}

Status error_class(int errorcode, int* errorclass) {
    if (!is_error_code(errorcode)) return unknown(errorcode);
    *errorclass = class_of(errorcode);
    return success();
}

Status error_string(int errorcode, char* string, int* resultlen) {
    if (!is_error_code(errorcode)) return unknown(errorcode);
    std::string text = error_text(errorcode);
    if (const std::string* said = latest(errorcode)) text += "; latest: " + *said;
    copy_text(text, string, MPI_MAX_ERROR_STRING, resultlen);
    return success();
}

Status add_error_class(int* errorclass) {
    *errorclass = add(0);
    return success();
}

Status add_error_code(int errorclass, int* errorcode) {
    if (!is_error_code(errorclass) || class_of(errorclass) != errorclass)
        return failure(MPI_ERR_ARG, "{} is no error class, so no code can be added to it",
                       errorclass);
    *errorcode = add(errorclass);
    return success();
}

Status add_error_string(int errorcode, const char* string) {
    UserError* error = user_error(errorcode);
    if (error == nullptr) return user_only(errorcode);
    if (strnlen(string, MPI_MAX_ERROR_STRING) >= MPI_MAX_ERROR_STRING)
        return failure(
            MPI_ERR_ARG,
            "the text for error code {} has more than MPI_MAX_ERROR_STRING - 1 characters",
            errorcode);
    error->text = string;
    return success();
}

Status remove_error_class(int errorclass) {
    const UserError* error = user_error(errorclass);
    if (error == nullptr) return user_only(errorclass);
    if (error->error_class != errorclass)
        return failure(MPI_ERR_ARG, "{} is an error code, not a class", errorclass);
    for (const auto& [code, other] : user_errors().codes)
        if (code != errorclass && other.error_class == errorclass)
            return failure(MPI_ERR_ARG, "error class {} still has code {}; remove that first",
                           errorclass, code);
    if (!error->text.empty())
        return failure(
            MPI_ERR_ARG,
            "error class {} still has a text; remove that first with MPI_Remove_error_string",
            errorclass);
    return remove(errorclass);
}

Status remove_error_code(int errorcode) {
    const UserError* error = user_error(errorcode);
    if (error == nullptr) return user_only(errorcode);
    if (error->error_class == errorcode)
        return failure(MPI_ERR_ARG, "{} is an error class, not a code", errorcode);
    if (!error->text.empty())
        return failure(
            MPI_ERR_ARG,
            "error code {} still has a text; remove that first with MPI_Remove_error_string",
            errorcode);
    return remove(errorcode);
}

Status remove_error_string(int errorcode) {
    UserError* error = user_error(errorcode);
    if (error == nullptr) return user_only(errorcode);
    error->text.clear();
    return success();
}

}  // namespace gantry::mpi
