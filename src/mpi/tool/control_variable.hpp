// SPDX-License-Identifier: BSD-3-Clause
//
// Control variables: the rows of base/params.def, in their order, under the names of their environment
// variables. What a tool sees of one:
//
//   Bytes                  MPI_UNSIGNED_LONG_LONG
//   Integer, Nanoseconds   MPI_COUNT
//   Switch, a word         MPI_INT with an enumeration
//   Text                   MPI_CHAR, kTextRoom of them
//
// All can be written before MPI_Init, a few also afterwards (Engine::set_parameter).
#pragma once

#include "base/config.hpp"
#include "base/status.hpp"

#include <mpi.h>

#include <string>

namespace gantry::mpi::tool {

struct Enumeration;

inline constexpr int kTextRoom = 4096;

// Of one that a tool wants to read or write. The MPI_T handle is its address.
struct ControlHandle {
    const config::Parameter* parameter;
};

// Which type a tool reads the parameter as, and how many of it.
MPI_Datatype type_of(const config::Parameter& parameter);
int count_of(const config::Parameter& parameter);

// The parameters as they are now: of the engine, or those that MPI_Init would start with.
Result<config::Config> parameters_now();

}  // namespace gantry::mpi::tool
