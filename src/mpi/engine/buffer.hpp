// SPDX-License-Identifier: BSD-3-Clause
//
// A program's buffer arguments as the layers below take them.
#pragma once

#include "mpi/datatype/datatype.hpp"
#include "p2p/request.hpp"

namespace gantry::mpi {

inline p2p::Buffer buffer(const void* address, MPI_Count count, const Datatype& datatype) {
    // Send buffers are never written; one Buffer type serves both directions.
    return {const_cast<void*>(address), static_cast<std::uint64_t>(count), &datatype.layout};
}

}  // namespace gantry::mpi
