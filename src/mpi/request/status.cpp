// SPDX-License-Identifier: BSD-3-Clause
//
// Reading and writing statuses (MPI 5.0 sections 3.2.5 and 13.3). A status holds bytes; counts are
// worked out from the datatype that the program asks with.
#include "mpi/request/status.hpp"

#include "mpi/bodies.hpp"
#include "mpi/datatype/datatype.hpp"

#include <algorithm>

namespace gantry::mpi {
namespace {

// Basic items in the first `bytes` data bytes of elements of a type; MPI_UNDEFINED when they end
// inside an item.
MPI_Count items_in(const Datatype& datatype, Bytes bytes) {
    if (datatype.size() == 0) return bytes == 0 ? 0 : MPI_UNDEFINED;
    MPI_Count count = static_cast<MPI_Count>(bytes / datatype.size() * datatype.items);
    Bytes rest = bytes % datatype.size();
    for (Bytes size : datatype.item_sizes) {
        if (rest == 0) return count;
        if (rest < size) return MPI_UNDEFINED;
        rest -= size;
        ++count;
    }
    for (const Piece& piece : datatype.pieces) {
        if (rest == 0) return count;
        const Bytes taken = std::min(rest, piece.elements() * piece.type->size());
        const MPI_Count inside = items_in(*piece.type, taken);
        if (inside == MPI_UNDEFINED) return MPI_UNDEFINED;
        count += inside;
        rest -= taken;
    }
    return count;
}

// The other way round: data bytes of the first `count` basic items.
Bytes bytes_of_items(const Datatype& datatype, Bytes count) {
    if (datatype.items == 0) return 0;
    Bytes bytes = count / datatype.items * datatype.size();
    Bytes rest = count % datatype.items;
    for (Bytes size : datatype.item_sizes) {
        if (rest == 0) return bytes;
        bytes += size;
        --rest;
    }
    for (const Piece& piece : datatype.pieces) {
        if (rest == 0) return bytes;
        const Bytes taken = std::min(rest, piece.elements() * piece.type->items);
        bytes += bytes_of_items(*piece.type, taken);
        rest -= taken;
    }
    return bytes;
}

}  // namespace

Status get_count(const MPI_Status* status, Datatype& datatype, MPI_Count* count) {
    const Bytes bytes = bytes_of(*status);
    const Bytes size = datatype.size();
    if (size == 0)
        *count = bytes == 0 ? 0 : MPI_UNDEFINED;
    else
        *count = bytes % size == 0 ? static_cast<MPI_Count>(bytes / size) : MPI_UNDEFINED;
    return success();
}

Status get_elements(const MPI_Status* status, Datatype& datatype, MPI_Count* count) {
    *count = items_in(datatype, bytes_of(*status));
    return success();
}

Status status_set_elements(MPI_Status* status, Datatype& datatype, MPI_Count count) {
    set_bytes(*status, bytes_of_items(datatype, static_cast<Bytes>(count)));
    return success();
}

Status status_set_cancelled(MPI_Status* status, int flag) {
    set_cancelled(*status, flag != 0);
    return success();
}

Status test_cancelled(const MPI_Status* status, int* flag) {
    *flag = is_cancelled(*status);
    return success();
}

Status status_get_source(const MPI_Status* status, int* source) {
    *source = status->MPI_SOURCE;
    return success();
}
Status status_get_tag(const MPI_Status* status, int* tag) {
    *tag = status->MPI_TAG;
    return success();
}
Status status_get_error(const MPI_Status* status, int* err) {
    *err = status->MPI_ERROR;
    return success();
}
Status status_set_source(MPI_Status* status, int source) {
    status->MPI_SOURCE = source;
    return success();
}
Status status_set_tag(MPI_Status* status, int tag) {
    status->MPI_TAG = tag;
    return success();
}
Status status_set_error(MPI_Status* status, int err) {
    status->MPI_ERROR = err;
    return success();
}

}  // namespace gantry::mpi
