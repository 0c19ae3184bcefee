// SPDX-License-Identifier: BSD-3-Clause
//
// Type signatures of datatypes (layout/signature.hpp). Types of one element match, whatever their
// names: MPI_INT and MPI_INT32_T. A pair type is its value and its index. MPI_BYTE and MPI_PACKED
// match anything: the standard says so of MPI_PACKED; of MPI_BYTE it does not, but programs send
// and receive the bytes of other types everywhere.
#pragma once

#include "layout/signature.hpp"
#include "p2p/request.hpp"

#include <string>

namespace gantry::mpi {

struct Datatype;
using layout::Signature;

// Buffers know the layout of their datatype alone. Null: it is none of a datatype.
const Datatype* datatype_of(const p2p::Buffer& buffer);

Signature signature_of(const Datatype& datatype, Bytes count);
// Of the first items of so many elements, which have as many at least.
Signature beginning_of(const Datatype& datatype, Bytes count, Bytes items);

// Whether data of the signature `sent` may go to elements of a datatype. It may be shorter than they
// are, not longer.
bool may_go_into(const Signature& sent, const Datatype& datatype, Bytes count);

// "3 of MPI_INT"; "9 basic items that begin with 1 of MPI_INT and 2 of MPI_DOUBLE".
std::string words(const Signature& signature);

}  // namespace gantry::mpi
