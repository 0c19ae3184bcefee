// SPDX-License-Identifier: BSD-3-Clause
//
// The predefined pair types by their parts.
#pragma once

#include <mpi.h>

namespace gantry::mpi {

struct PairKind {
    MPI_Datatype value, index, pair;
};

inline const PairKind kPairKinds[] = {
    {MPI_FLOAT, MPI_INT, MPI_FLOAT_INT},
    {MPI_DOUBLE, MPI_INT, MPI_DOUBLE_INT},
    {MPI_LONG, MPI_INT, MPI_LONG_INT},
    {MPI_INT, MPI_INT, MPI_2INT},
    {MPI_SHORT, MPI_INT, MPI_SHORT_INT},
    {MPI_LONG_DOUBLE, MPI_INT, MPI_LONG_DOUBLE_INT},
    {MPI_REAL, MPI_REAL, MPI_2REAL},
    {MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION, MPI_2DOUBLE_PRECISION},
    {MPI_INTEGER, MPI_INTEGER, MPI_2INTEGER},
};

// Null: no pair type.
inline const PairKind* pair_kind(MPI_Datatype handle) {
    for (const PairKind& kind : kPairKinds)
        if (kind.pair == handle) return &kind;
    return nullptr;
}

}  // namespace gantry::mpi
