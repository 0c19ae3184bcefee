// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/check/part.hpp"

#include "mpi/datatype/datatype.hpp"

namespace gantry::mpi {
namespace {

bool untyped(const Part& one, const Part& other) {
    return one.signature.matches_anything() || other.signature.matches_anything();
}

}  // namespace

bool Part::matches(const Part& other) const {
    return untyped(*this, other) ? bytes == other.bytes : signature == other.signature;
}

Part part_of(const p2p::Buffer& buffer) {
    const Datatype* const datatype = datatype_of(buffer);
    return datatype != nullptr ? Part{signature_of(*datatype, buffer.count), buffer.bytes()}
                               : Part{};
}

int class_of_difference(const Part& one, const Part& other) {
    return !untyped(one, other) && one.signature.items == other.signature.items ? MPI_ERR_TYPE
                                                                                : MPI_ERR_COUNT;
}

}  // namespace gantry::mpi
