// SPDX-License-Identifier: BSD-3-Clause
//
// How the elements of a datatype lie in a file whose items have other sizes than memory's: the type is
// made again by the same constructors, of as many bytes as each predefined type has there (MPI 5.0
// section 14.5.1). What its makers gave in bytes stays as it is.
#pragma once

#include "mpi/io/datarep.hpp"

namespace gantry::mpi {

Result<layout::Layout> layout_in_file(const Datarep& datarep, const Datatype& datatype);

}  // namespace gantry::mpi
