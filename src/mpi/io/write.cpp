// SPDX-License-Identifier: BSD-3-Clause
//
// The functions that write files (MPI 5.0 sections 14.4.2 to 14.4.5): which way each one goes.
#include "mpi/bodies.hpp"
#include "mpi/io/access.hpp"

namespace gantry::mpi {
namespace {

constexpr io::Direction kThis = io::Direction::write;

}  // namespace

Pending file_write_at(File& fh, MPI_Offset offset, const void* buf, MPI_Count count,
                      Datatype& datatype, MPI_Status* status) {
    return transfer(fh, {kThis, Pointer::given, Together::no, offset}, {buf, count, datatype},
                    status);
}

Status file_iwrite_at(File& fh, MPI_Offset offset, const void* buf, MPI_Count count,
                      Datatype& datatype, MPI_Request* request) {
    return start_transfer(fh, {kThis, Pointer::given, Together::no, offset}, {buf, count, datatype},
                          request);
}

Pending file_write(File& fh, const void* buf, MPI_Count count, Datatype& datatype,
                   MPI_Status* status) {
    return transfer(fh, {kThis, Pointer::individual, Together::no}, {buf, count, datatype}, status);
}

Status file_iwrite(File& fh, const void* buf, MPI_Count count, Datatype& datatype,
                   MPI_Request* request) {
    return start_transfer(fh, {kThis, Pointer::individual, Together::no}, {buf, count, datatype},
                          request);
}

Pending file_write_shared(File& fh, const void* buf, MPI_Count count, Datatype& datatype,
                          MPI_Status* status) {
    return transfer(fh, {kThis, Pointer::shared, Together::no}, {buf, count, datatype}, status);
}

Status file_iwrite_shared(File& fh, const void* buf, MPI_Count count, Datatype& datatype,
                          MPI_Request* request) {
    return start_transfer(fh, {kThis, Pointer::shared, Together::no}, {buf, count, datatype},
                          request);
}

Pending file_write_at_all(File& fh, MPI_Offset offset, const void* buf, MPI_Count count,
                          Datatype& datatype, MPI_Status* status) {
    return transfer(fh, {kThis, Pointer::given, Together::yes, offset}, {buf, count, datatype},
                    status);
}

Status file_iwrite_at_all(File& fh, MPI_Offset offset, const void* buf, MPI_Count count,
                          Datatype& datatype, MPI_Request* request) {
    return start_transfer(fh, {kThis, Pointer::given, Together::yes, offset},
                          {buf, count, datatype}, request);
}

Pending file_write_all(File& fh, const void* buf, MPI_Count count, Datatype& datatype,
                       MPI_Status* status) {
    return transfer(fh, {kThis, Pointer::individual, Together::yes}, {buf, count, datatype},
                    status);
}

Status file_iwrite_all(File& fh, const void* buf, MPI_Count count, Datatype& datatype,
                       MPI_Request* request) {
    return start_transfer(fh, {kThis, Pointer::individual, Together::yes}, {buf, count, datatype},
                          request);
}

Pending file_write_ordered(File& fh, const void* buf, MPI_Count count, Datatype& datatype,
                           MPI_Status* status) {
    return transfer(fh, {kThis, Pointer::ordered, Together::yes}, {buf, count, datatype}, status);
}

Status file_write_at_all_begin(File& fh, MPI_Offset offset, const void* buf, MPI_Count count,
                               Datatype& datatype) {
    return begin_split(fh, Split::write_at_all, {kThis, Pointer::given, Together::yes, offset},
                       {buf, count, datatype});
}

Pending file_write_at_all_end(File& fh, const void*, MPI_Status* status) {
    return end_split(fh, Split::write_at_all, status);
}

Status file_write_all_begin(File& fh, const void* buf, MPI_Count count, Datatype& datatype) {
    return begin_split(fh, Split::write_all, {kThis, Pointer::individual, Together::yes},
                       {buf, count, datatype});
}

Pending file_write_all_end(File& fh, const void*, MPI_Status* status) {
    return end_split(fh, Split::write_all, status);
}

Status file_write_ordered_begin(File& fh, const void* buf, MPI_Count count, Datatype& datatype) {
    return begin_split(fh, Split::write_ordered, {kThis, Pointer::ordered, Together::yes},
                       {buf, count, datatype});
}

Pending file_write_ordered_end(File& fh, const void*, MPI_Status* status) {
    return end_split(fh, Split::write_ordered, status);
}

}  // namespace gantry::mpi
