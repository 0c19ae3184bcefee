// SPDX-License-Identifier: BSD-3-Clause
//
// The tool information interface (MPI 5.0 chapter 15): what a tool may ask and set, from before MPI_Init
// to after MPI_Finalize.
//
//   control variables      the parameters (base/params.def)        control_variable, control_handle
//   performance variables  the counters (base/counters.def)        performance_variable, performance_handle
//   categories             both, by layer                          category
//   events                 none; one source of time                event, source
//
// Nothing here calls an error handler: every function returns a class MPI_T_ERR_*, and the sentence of its
// Status goes to the log at level info (abi/tool_call.hpp).
#pragma once

#include "base/slab.hpp"
#include "base/status.hpp"
#include "mpi/tool/control_variable.hpp"
#include "mpi/tool/enumeration.hpp"
#include "mpi/tool/performance_handle.hpp"

#include <mpi.h>

#include <string_view>

namespace gantry::mpi::tool {

// All that MPI_T has given the program. Made at the first MPI_T_init_thread and never destroyed, so that
// any handle can be judged.
class Tool {
  public:
    int uses = 0;  // MPI_T_init_thread without its MPI_T_finalize
    Enumerations enumerations;
    Slab<ControlHandle> controls;
    Slab<PerformanceSession> sessions;
    Slab<PerformanceHandle> counters;

    // The program has finalized the interface: what it has not freed goes.
    void clear();
};

// Of a process whose tool interface was initialised once.
Tool& the_tool();
// Between MPI_T_init_thread and MPI_T_finalize.
bool initialised();

// A string for the program (MPI 5.0 section 15.3.3): `length` (null: nobody wants it) is the room at `to` and
// becomes the room that the whole string needs.
void give_text(std::string_view text, char* to, int* length);
// Writes what somebody wants.
template <class Value>
void give(Value* to, Value value) {
    if (to != nullptr) *to = value;
}

Status no_such_index(const char* argument, int index, std::size_t number);
Status no_such_name(const char* what, const char* name);
// A handle or a session that is null, freed, foreign or not of the right kind.
Status no_such_handle(const char* argument);

}  // namespace gantry::mpi::tool
