// SPDX-License-Identifier: BSD-3-Clause
//
// The life of the tool interface, and what its functions share.
#include "mpi/tool/tool.hpp"

#include "mpi/bodies.hpp"
#include "mpi/engine/boundary.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/engine/text.hpp"

#include <new>

namespace gantry::mpi {
namespace tool {

Tool& the_tool() {
    return *process().tool;
}

bool initialised() {
    const Process& p = process();
    return p.tool != nullptr && p.tool->uses > 0 && !p.forked;
}

void Tool::clear() {
    counters.for_each([this](PerformanceHandle& handle) { free_handle(*this, handle); });
    sessions.for_each([this](PerformanceSession& session) { sessions.destroy(&session); });
    controls.for_each([this](ControlHandle& handle) { controls.destroy(&handle); });
}

void give_text(std::string_view text, char* to, int* length) {
    if (length == nullptr) return;
    if (to != nullptr && *length > 0) copy_text(text, to, static_cast<std::size_t>(*length));
    *length = static_cast<int>(text.size()) + 1;
}

Status no_such_index(const char* argument, int index, std::size_t number) {
    return failure(MPI_T_ERR_INVALID_INDEX, "argument {} is {}, but there are {} of them", argument,
                   index, number);
}

Status no_such_name(const char* what, const char* name) {
    return failure(MPI_T_ERR_INVALID_NAME, "there is no {} '{}'; `gantry info` lists them", what,
                   name);
}

Status no_such_handle(const char* argument) {
    return failure(MPI_T_ERR_INVALID_HANDLE,
                   "argument {} is null, freed, or not a handle that this call can work with",
                   argument);
}

}  // namespace tool

Status t_init_thread(int required, int* provided) {
    Process& p = process();
    if (p.forked)
        return failure(MPI_T_ERR_CANNOT_INIT,
                       "this process was forked after its parent had used MPI; start it with exec "
                       "or the launcher");
    if (p.tool == nullptr) {
        // Whoever asks for parameters now would otherwise hear of a bad one at each of them.
        if (p.engine == nullptr) {
            const Result<config::Config> config = config::from_environment();
            if (!config.ok()) return failure(MPI_T_ERR_CANNOT_INIT, "{}", config.status().text());
        }
        p.tool = new (std::nothrow) tool::Tool;
        if (p.tool == nullptr)
            return failure(MPI_T_ERR_MEMORY, "out of memory for the tool interface");
    }
    ++p.tool->uses;
    if (required == MPI_THREAD_MULTIPLE) admit_tools();
    *provided = required;
    return success();
}

Status t_finalize() {
    if (--process().tool->uses == 0) process().tool->clear();
    return success();
}

}  // namespace gantry::mpi
