// SPDX-License-Identifier: BSD-3-Clause
//
// What the program has attached for buffered sends (buffered.hpp), by process, session or
// communicator.
#pragma once

#include "base/units.hpp"
#include "mpi/engine/handles.hpp"

#include <vector>

namespace gantry::mpi {

// One attached buffer, or none.
struct SendBuffer {
    void* address = nullptr;
    Bytes size = 0;
    bool attached = false;
    bool automatic = false;  // MPI_BUFFER_AUTOMATIC: as much as there is
    Bytes held = 0;          // bytes of messages that have not left
    int messages = 0;
    std::vector<Request*> flushes{};  // complete when there are no messages
};

}  // namespace gantry::mpi
