// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/task.hpp"
#include "io/file.hpp"
#include "mpi/io/datarep.hpp"

namespace gantry::mpi {

// A read or write of elements whose form in the file is another one, of `in_file` bytes. Each rank for itself. `moved`:
// bytes in memory of whole elements.
Task<Status> transfer_converted(Executor& executor, File* fh, io::Access access,
                                const Datarep* datarep, const Datatype* datatype, Bytes in_file,
                                Bytes* moved);

}  // namespace gantry::mpi
