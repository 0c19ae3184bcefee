// SPDX-License-Identifier: BSD-3-Clause
//
// Comm: what MPI adds to a p2p::Group: a name, attributes, an error handler, hints, and a second
// context in which collectives and internal agreement run, unseen by the program's messages.
#pragma once

#include "coll/team.hpp"
#include "mpi/attr/attribute.hpp"
#include "mpi/errhandler/errhandler.hpp"
#include "mpi/info/info.hpp"
#include "mpi/engine/object.hpp"
#include "mpi/pt2pt/send_buffer.hpp"
#include "p2p/group.hpp"

#include <string>

namespace gantry::mpi {

class Engine;

struct Comm : Object<MPI_Comm> {
    Engine* engine = nullptr;
    p2p::Group group;       // the program's messages
    p2p::Group collective;  // the same ranks with kCollectiveContext
    std::uint32_t blocking_sequence = 0, background_sequence = 0;
    Errhandler* errhandler = nullptr;
    Attributes attributes;
    InfoPairs hints;
    std::string name;
    SendBuffer send_buffer;  // for buffered sends on this communicator

    int rank() const { return group.rank; }
    int size() const { return group.size(); }
    // The next collective operation on this communicator: every rank calls them in the same order,
    // so tags agree. Blocking and nonblocking ones are counted apart, so a program that mixes up
    // only the order between the two still works, as it does elsewhere.
    coll::Team team();
    coll::Team background_team();
};

// A communicator over these world ranks; null when memory is exhausted. `rank` is mine.
Comm* make_comm(Engine& engine, std::uint32_t context, std::vector<int> peers, int rank,
                Errhandler* errhandler);
// One owner less; the last one ends the communicator.
void release(Comm* comm);

}  // namespace gantry::mpi
