// SPDX-License-Identifier: BSD-3-Clause
//
// Reads and writes of files as MPI has them: 18 ways to say where, each in up to four forms
// (blocking, nonblocking, split, large counts). Every body names its way and its form
// (read.cpp, write.cpp); what they do stands in access.cpp once.
#pragma once

#include "io/transfer.hpp"
#include "mpi/engine/pending.hpp"
#include "mpi/io/file.hpp"

namespace gantry::mpi {

// Which bytes of the view come first: at an offset that is given, at the individual pointer, at the
// shared pointer, or at the shared pointer in the order of the ranks.
enum class Pointer : std::uint8_t { given, individual, shared, ordered };
enum class Together : std::uint8_t { no, yes };

struct Where {
    io::Direction direction;
    Pointer pointer;
    Together together = Together::no;
    MPI_Offset offset = 0;  // Pointer::given
};

struct Memory {
    const void* address;
    MPI_Count count;
    Datatype& datatype;
};

Pending transfer(File& fh, const Where& where, const Memory& memory, MPI_Status* status);
Status start_transfer(File& fh, const Where& where, const Memory& memory, MPI_Request* request);
Status begin_split(File& fh, Split split, const Where& where, const Memory& memory);
Pending end_split(File& fh, Split split, MPI_Status* status);

// Of calls that may not come while a split collective operation is under way.
Status check_no_split(const File& fh);

}  // namespace gantry::mpi
