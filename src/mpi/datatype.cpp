// SPDX-License-Identifier: BSD-3-Clause
//
// The life of a derived datatype: owners counted, since messages in flight and types built from it outlive the program's handle.
#include "mpi/datatype.hpp"

#include "mpi/process.hpp"

namespace gantry::mpi {

void release(Datatype* datatype) {
    if (!let_go(datatype)) return;
    for (Datatype* part : datatype->recipe.types) release(part);
    process().datatypes.destroy(datatype);
}

}  // namespace gantry::mpi
