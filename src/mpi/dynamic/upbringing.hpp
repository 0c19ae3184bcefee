// SPDX-License-Identifier: BSD-3-Clause
//
// What parents tell a job that they spawn, in one text that any launcher passes on: the port where they wait
// for it, and for each of its programs the initial error handler that the info key mpi_initial_errhandler named.
//
//     "host:port#word 0=mpi_errors_return 2=mpi_errors_abort"
#pragma once

#include "base/status.hpp"
#include "job/job.hpp"
#include "mpi/info/info.hpp"

#include <string>
#include <string_view>

namespace gantry::mpi {

struct Errhandler;

inline constexpr std::string_view kInitialErrhandlerKey = "mpi_initial_errhandler";

// Whether the values of such keys are ones that the standard knows.
Status check_upbringing(const InfoPairs& info);
std::string upbringing(const job::SpawnOrder& order, std::string_view port);

std::string_view parents_port(std::string_view upbringing);
// Of that program; null: none is named.
Errhandler* initial_errhandler(std::string_view upbringing, int program);

}  // namespace gantry::mpi
