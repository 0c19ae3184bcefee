// SPDX-License-Identifier: BSD-3-Clause
//
// The ranks and how a benchmark gives up. Only standard MPI calls. Ranks come in pairs: of n, rank
// r of the first half talks to rank r + n/2 of the second.
#pragma once

#include <mpi.h>

#include <string>

namespace gantry::bench {

int rank();
int pairs();
// Which end of its pair this rank is: 0 or 1.
inline int side() {
    return rank() < pairs() ? 0 : 1;
}
inline int peer() {
    return side() == 0 ? rank() + pairs() : rank() - pairs();
}
inline bool first() {
    return rank() == 0;
}

// All ranks come here at about the same time.
void meet();
// The largest of all ranks' values, on every rank.
double slowest(double seconds);

// Whether a launcher started this process as a rank; asked of the environment, before MPI_Init.
bool launched();

// The library's own words, first line: "Gantry 0.1.0 ...".
std::string library_text();
// "Gantry" under Gantry, "MPI" elsewhere: heading of the library's column.
std::string library_name();

// Ends all ranks in order (a mistake that all saw), or this process if it is none.
[[noreturn]] void finish(int status);
// Ends the job with a message from this rank.
[[noreturn]] void give_up(const std::string& message);

}  // namespace gantry::bench
