// SPDX-License-Identifier: BSD-3-Clause
//
// The type signature of data (MPI 5.0 section 5.1): its basic types in their order, as a hash.
// Concatenations and repetitions are worked out from their parts, so a large count costs no more
// than a small one. Types of one element match, whatever their names: MPI_INT and MPI_INT32_T.
#pragma once

#include "base/units.hpp"

#include <cstdint>

namespace gantry::mpi {

struct Datatype;

struct Signature {
    std::uint64_t hash = 0;
    Bytes items = 0;
    bool operator==(const Signature&) const = default;
};

Signature signature_of(const Datatype& datatype, Bytes count);

}  // namespace gantry::mpi
