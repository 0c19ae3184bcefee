// SPDX-License-Identifier: BSD-3-Clause
//
// Elements of a datatype in the representation "external32": as packed data, and in files.
#pragma once

#include "base/status.hpp"
#include "base/units.hpp"
#include "mpi/datatype/datatype.hpp"

namespace gantry::mpi {

// Data bytes of one element.
Bytes external_size(const Datatype& datatype);
// `count` elements in host memory to external form, and back; MPI_ERR_CONVERSION: a value has no such
// form.
Status pack_external_items(const void* native, Bytes count, const Datatype& datatype,
                           std::byte* external);
Status unpack_external_items(void* native, Bytes count, const Datatype& datatype,
                             const std::byte* external);

}  // namespace gantry::mpi
