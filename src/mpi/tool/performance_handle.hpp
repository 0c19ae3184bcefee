// SPDX-License-Identifier: BSD-3-Clause
//
// Performance variables: the rows of base/counters.def. States, levels and sizes are what they are now: they
// always run and only read. Counters, aggregates and peaks are of the time for which a handle runs, each
// handle for itself:
//
//   allocated --start--> running --stop--> stopped --start--> running ...
//
// A counter's handle remembers what the ledger said as it was started, and what it had seen before. The ledger
// has one peak for all handles: whenever one of them looks, every running one takes the peak over, and the
// ledger's begins anew.
#pragma once

#include "base/counters.hpp"
#include "base/status.hpp"

#include <mpi.h>

#include <cstdint>

namespace gantry::mpi {
struct Comm;
}

namespace gantry::mpi::tool {

class Tool;

// The MPI_T handle of each of these is its address.
struct PerformanceSession {
    int handles = 0;  // that belong to it
};

struct PerformanceHandle {
    PerformanceSession* session = nullptr;
    const CounterRow* row = nullptr;
    Comm* comm = nullptr;  // that it is bound to, held; null: to nothing
    bool running = false;
    std::uint64_t seen = 0;   // before it was started last; of a peak: so far
    std::uint64_t since = 0;  // what the ledger said when it was started last
};

// Whether such a variable always runs; then it can be neither started, stopped nor written.
bool is_continuous(CounterKind kind);
MPI_Datatype type_of(CounterKind kind);
int class_of(CounterKind kind);

void free_handle(Tool& tool, PerformanceHandle& handle);

}  // namespace gantry::mpi::tool
