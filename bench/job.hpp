// SPDX-License-Identifier: BSD-3-Clause
//
// The two ranks and how a benchmark gives up. Only standard MPI calls.
#pragma once

#include <mpi.h>

#include <string>

namespace gantry::bench {

int rank();
inline int peer() {
    return 1 - rank();
}
inline bool first() {
    return rank() == 0;
}

// Both ranks come here at about the same time.
void meet();

// The library's own words, first line: "Gantry 0.1.0 ...".
std::string library_text();
// "Gantry" under Gantry, "MPI" elsewhere: heading of the library's column.
std::string library_name();

// Ends both ranks in order (a mistake that both saw).
[[noreturn]] void finish(int status);
// Ends the job with a message from this rank.
[[noreturn]] void give_up(const std::string& message);

}  // namespace gantry::bench
