// SPDX-License-Identifier: BSD-3-Clause
//
// The functions that read files (MPI 5.0 sections 14.4.2 to 14.4.5): which way each one goes.
#include "mpi/bodies.hpp"
#include "mpi/io/access.hpp"

namespace gantry::mpi {
namespace {

constexpr io::Direction kThis = io::Direction::read;

}  // namespace

Pending file_read_at(File& fh, MPI_Offset offset, void* buf, MPI_Count count, Datatype& datatype,
                     MPI_Status* status) {
    return transfer(fh, {kThis, Pointer::given, Together::no, offset}, {buf, count, datatype},
                    status);
}

Status file_iread_at(File& fh, MPI_Offset offset, void* buf, MPI_Count count, Datatype& datatype,
                     MPI_Request* request) {
    return start_transfer(fh, {kThis, Pointer::given, Together::no, offset}, {buf, count, datatype},
                          request);
}

Pending file_read(File& fh, void* buf, MPI_Count count, Datatype& datatype, MPI_Status* status) {
    return transfer(fh, {kThis, Pointer::individual, Together::no}, {buf, count, datatype}, status);
}

Status file_iread(File& fh, void* buf, MPI_Count count, Datatype& datatype, MPI_Request* request) {
    return start_transfer(fh, {kThis, Pointer::individual, Together::no}, {buf, count, datatype},
                          request);
}

Pending file_read_shared(File& fh, void* buf, MPI_Count count, Datatype& datatype,
                         MPI_Status* status) {
    return transfer(fh, {kThis, Pointer::shared, Together::no}, {buf, count, datatype}, status);
}

Status file_iread_shared(File& fh, void* buf, MPI_Count count, Datatype& datatype,
                         MPI_Request* request) {
    return start_transfer(fh, {kThis, Pointer::shared, Together::no}, {buf, count, datatype},
                          request);
}

Pending file_read_at_all(File& fh, MPI_Offset offset, void* buf, MPI_Count count,
                         Datatype& datatype, MPI_Status* status) {
    return transfer(fh, {kThis, Pointer::given, Together::yes, offset}, {buf, count, datatype},
                    status);
}

Status file_iread_at_all(File& fh, MPI_Offset offset, void* buf, MPI_Count count,
                         Datatype& datatype, MPI_Request* request) {
    return start_transfer(fh, {kThis, Pointer::given, Together::yes, offset},
                          {buf, count, datatype}, request);
}

Pending file_read_all(File& fh, void* buf, MPI_Count count, Datatype& datatype,
                      MPI_Status* status) {
    return transfer(fh, {kThis, Pointer::individual, Together::yes}, {buf, count, datatype},
                    status);
}

Status file_iread_all(File& fh, void* buf, MPI_Count count, Datatype& datatype,
                      MPI_Request* request) {
    return start_transfer(fh, {kThis, Pointer::individual, Together::yes}, {buf, count, datatype},
                          request);
}

Pending file_read_ordered(File& fh, void* buf, MPI_Count count, Datatype& datatype,
                          MPI_Status* status) {
    return transfer(fh, {kThis, Pointer::ordered, Together::yes}, {buf, count, datatype}, status);
}

Status file_read_at_all_begin(File& fh, MPI_Offset offset, void* buf, MPI_Count count,
                              Datatype& datatype) {
    return begin_split(fh, Split::read_at_all, {kThis, Pointer::given, Together::yes, offset},
                       {buf, count, datatype});
}

Pending file_read_at_all_end(File& fh, void*, MPI_Status* status) {
    return end_split(fh, Split::read_at_all, status);
}

Status file_read_all_begin(File& fh, void* buf, MPI_Count count, Datatype& datatype) {
    return begin_split(fh, Split::read_all, {kThis, Pointer::individual, Together::yes},
                       {buf, count, datatype});
}

Pending file_read_all_end(File& fh, void*, MPI_Status* status) {
    return end_split(fh, Split::read_all, status);
}

Status file_read_ordered_begin(File& fh, void* buf, MPI_Count count, Datatype& datatype) {
    return begin_split(fh, Split::read_ordered, {kThis, Pointer::ordered, Together::yes},
                       {buf, count, datatype});
}

Pending file_read_ordered_end(File& fh, void*, MPI_Status* status) {
    return end_split(fh, Split::read_ordered, status);
}

}  // namespace gantry::mpi
