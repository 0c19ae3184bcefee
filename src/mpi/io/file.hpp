// SPDX-License-Identifier: BSD-3-Clause
//
// File: what MPI adds to an io::File: the datatypes and the representation of its view, an error
// handler, hints, and the split collective operation that is under way.
#pragma once

#include "mpi/engine/object.hpp"
#include "mpi/errhandler/errhandler.hpp"
#include "mpi/info/info.hpp"
#include "p2p/request.hpp"

namespace gantry::io {
class File;
}

namespace gantry::mpi {

class Engine;
struct Datarep;

enum class Split {
    none,
    read_all,
    read_at_all,
    read_ordered,
    write_all,
    write_at_all,
    write_ordered
};

struct File : Object<MPI_File> {
    Engine* engine = nullptr;
    io::File* file = nullptr;  // owned; null once it is closed
    Errhandler* errhandler = nullptr;
    InfoPairs hints;                                 // as MPI_File_get_info tells them
    Datatype *etype = nullptr, *filetype = nullptr;  // owned references
    const Datarep* datarep = nullptr;
    int under_way = 0;  // reads and writes
    Split split = Split::none;
    p2p::Request* split_request = nullptr;
    Datatype* split_type = nullptr;  // owned reference
};

// One owner less.
void release(File* file);

}  // namespace gantry::mpi
