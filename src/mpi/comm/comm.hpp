// SPDX-License-Identifier: BSD-3-Clause
//
// Comm: what MPI adds to a p2p::Group: a name, attributes, an error handler, hints, and a second
// context in which collectives and internal agreement run, unseen by the program's messages.
//
// An inter-communicator has two groups of processes, mine and the remote one. Ranks in calls name
// processes of the remote group. Collectives and agreements run among both groups, one behind the
// other; which goes first follows from the members, so both agree.
#pragma once

#include "coll/mailbox_use.hpp"
#include "coll/planner.hpp"
#include "coll/team.hpp"
#include "mpi/attr/attribute.hpp"
#include "mpi/errhandler/errhandler.hpp"
#include "mpi/info/info.hpp"
#include "mpi/engine/object.hpp"
#include "mpi/pt2pt/send_buffer.hpp"
#include "p2p/group.hpp"

#include <memory>
#include <string>
#include <vector>

namespace gantry::mpi {

class Engine;
struct Topology;

struct Comm : Object<MPI_Comm> {
    Engine* engine = nullptr;
    p2p::Group group;       // the program's messages: whom it may name, and my own rank
    p2p::Group collective;  // everybody, with kCollectiveContext
    // Of partitioned communication, made at its first use: who sends to whom, and the partitions.
    std::unique_ptr<p2p::Group> greetings, partitions;
    std::uint32_t partitioned_tags = 0;  // for messages to me in `partitions`
    BothWays traffic;                    // of all these
    // Of an inter-communicator: how many processes the group has that goes first in `collective`.
    // 0: there is one group.
    int border = 0;
    coll::Planner planner;         // how collectives go
    coll::MailboxUse mailbox_use;  // which small blocking ones go over its mailbox
    std::uint32_t blocking_sequence = 0, background_sequence = 0;
    std::uint32_t agreements = 0;  // of those that outlive ranks (mpi/faults)
    std::uintptr_t turn_of = 0;    // the thread that is in a blocking collective (coll/turn.hpp)
    bool told_of_threads = false;
    Errhandler* errhandler = nullptr;
    Attributes attributes;
    InfoPairs hints;
    std::string name;
    SendBuffer send_buffer;                      // for buffered sends on this communicator
    std::shared_ptr<SendBuffer> session_buffer;  // of the session that it comes from, or null
    std::shared_ptr<const Topology> topology;    // null: it has none

    bool is_inter() const { return border > 0; }
    // In my own group, and how many are there.
    int rank() const { return group.rank; }
    int size() const { return is_inter() ? collective.size() - group.size() : group.size(); }
    // How many processes ranks in calls may name.
    int peers() const { return group.size(); }
    // The world ranks of my own group.
    std::vector<int> members() const;
    // The next collective operation on this communicator: every rank calls them in the same order,
    // so tags agree. Blocking and nonblocking ones are counted apart, so a program that mixes up
    // only the order between the two still works, as it does elsewhere.
    coll::Team team();
    coll::Team background_team();
    Status open_partitioned();
};

// A communicator over these world ranks; null when memory is exhausted. `rank` is mine.
Comm* make_comm(Engine& engine, std::uint32_t context, std::vector<int> peers, int rank,
                Errhandler* errhandler);
// The same for an inter-communicator; `rank` is mine in my own group.
Comm* make_intercomm(Engine& engine, std::uint32_t context, std::vector<int> mine,
                     std::vector<int> theirs, int rank, Errhandler* errhandler);
// Which of two groups goes first: both sides answer alike.
bool goes_first(Engine& engine, const std::vector<int>& mine, const std::vector<int>& theirs);
// One owner less; the last one ends the communicator.
void release(Comm* comm);

}  // namespace gantry::mpi
