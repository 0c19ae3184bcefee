// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Status: three public ints and five private ones (MPI 5.0 ABI). The first two private ones
// hold a 64-bit byte count, by memcpy since a status is only int-aligned; the third says cancelled.
// Completing one operation leaves MPI_ERROR alone.
#pragma once

#include "p2p/request.hpp"

#include <mpi.h>

#include <cstring>

namespace gantry::mpi {

inline void set_bytes(MPI_Status& status, Bytes bytes) {
    std::memcpy(status.MPI_internal, &bytes, sizeof bytes);
}
inline Bytes bytes_of(const MPI_Status& status) {
    Bytes bytes = 0;
    std::memcpy(&bytes, status.MPI_internal, sizeof bytes);
    return bytes;
}
inline void set_cancelled(MPI_Status& status, bool cancelled) {
    status.MPI_internal[2] = cancelled ? 1 : 0;
}
inline bool is_cancelled(const MPI_Status& status) {
    return status.MPI_internal[2] != 0;
}

// `status` may be null: ignored.
inline void write(MPI_Status* status, const p2p::Outcome& outcome) {
    if (status == MPI_STATUS_IGNORE) return;
    status->MPI_SOURCE = outcome.source;
    status->MPI_TAG = outcome.tag;
    set_bytes(*status, outcome.bytes);
    set_cancelled(*status, outcome.cancelled);
}
// What a null or inactive request tells (MPI 5.0 section 3.7.3): of this status MPI_ERROR is a part.
inline void write_empty(MPI_Status* status) {
    if (status == MPI_STATUS_IGNORE) return;
    write(status, p2p::Outcome{});
    status->MPI_ERROR = MPI_SUCCESS;
}
// What an operation with MPI_PROC_NULL tells.
inline p2p::Outcome proc_null_outcome() {
    return {MPI_PROC_NULL, MPI_ANY_TAG, 0, false};
}

}  // namespace gantry::mpi
