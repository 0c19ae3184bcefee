// SPDX-License-Identifier: BSD-3-Clause
#include "abi/tool_call.hpp"

#include "base/log.hpp"
#include "mpi/tool/tool.hpp"

namespace gantry::abi {

ToolCall::ToolCall(const char* function, Needs needs) : function_(function) {
    if (needs == Needs::initialised && !mpi::tool::initialised())
        fail(failure(MPI_T_ERR_NOT_INITIALIZED,
                     "called outside MPI_T_init_thread and MPI_T_finalize"));
}

void ToolCall::thread_level(const char* name, int value) {
    if (value != MPI_THREAD_SINGLE && value != MPI_THREAD_FUNNELED &&
        value != MPI_THREAD_SERIALIZED && value != MPI_THREAD_MULTIPLE)
        fail(failure(MPI_T_ERR_INVALID,
                     "argument {} is {} and must be one of the four MPI_THREAD_ "
                     "levels",
                     name, value));
}

void ToolCall::refuse_null(const char* name) {
    fail(failure(MPI_T_ERR_INVALID, "argument {} is a null pointer", name));
}

int ToolCall::leave(const Status& outcome) const {
    if (!outcome.ok()) log::info("{}: {}", function_, outcome.text());
    return outcome.error_class();
}

}  // namespace gantry::abi
