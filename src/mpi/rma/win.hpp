// SPDX-License-Identifier: BSD-3-Clause
//
// Win: what MPI adds to a rma::Window: a name, attributes, an error handler, hints.
#pragma once

#include "device/host_memory.hpp"
#include "mpi/attr/attribute.hpp"
#include "mpi/engine/object.hpp"
#include "mpi/errhandler/errhandler.hpp"
#include "mpi/info/info.hpp"

#include <string>

namespace gantry::rma {
class Window;
}

namespace gantry::mpi {

class Engine;

struct Win : Object<MPI_Win> {
    Engine* engine = nullptr;
    rma::Window* window = nullptr;  // owned
    int ranks = 0;
    bool checked =
        false;  // types are compared (GANTRY_CHECK): no operation ends at its entry point
    Errhandler* errhandler = nullptr;
    Attributes attributes;
    InfoPairs hints;
    std::string name;
    // The values of predefined attributes.
    void* base = nullptr;
    MPI_Aint bytes = 0;
    int unit = 1;
    int flavor = MPI_WIN_FLAVOR_CREATE;
    int model = MPI_WIN_UNIFIED;
    // Flushes that have nothing to wait for, until one of them drives what else is under way
    // (GANTRY_WINDOW_TURN).
    unsigned flushes_until_turn = 1;
    device::HostMemory program;  // the stack and heap of small origins, about which nobody is asked
};

// One owner less; the last one ends it.
void release(Win* win);

}  // namespace gantry::mpi
