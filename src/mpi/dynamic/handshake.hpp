// SPDX-License-Identifier: BSD-3-Clause
//
// Handshake: two groups of processes, of one job or of several, become an inter-communicator. Where some
// of them do not know each other yet, they are connected first.
//
// It goes in rounds. In each, every process says a text to its leader, the leaders exchange what they
// have got, and everybody hears the texts of all, those of the group that goes first before the others:
//
//   1  who I am, where, and which outsiders I know     -> who knows whom, where all are
//   2  what transports publish                         -> connected
//   3  how that went, and a context id                 -> success or failure of all; the largest id
//   4  whether that id is free here                    -> agreed, else 3 again
#pragma once

#include "coll/team.hpp"
#include "mpi/dynamic/bridge.hpp"

#include <memory>
#include <string>
#include <vector>

namespace gantry::mpi {

struct Handshake {
    Engine* engine = nullptr;
    coll::Team local;          // my group; its tags are the operation's own
    int leader = 0;            // in it
    Bridge* bridge = nullptr;  // the leader's
    // What the leader knows already: it cannot meet the other. All of its group hear of it.
    Status judged;
};

struct Met {
    std::vector<int> theirs;
    std::uint32_t context = 0;
    bool mine_first = false;  // both sides say the opposite
};

Task<Status> meet(Executor& executor, Handshake* handshake, Met* met);

// Texts as one, and back.
std::string packed(const std::vector<std::string>& texts);
std::vector<std::string> unpacked(std::string_view text);

// Everybody of a team hears the root's text.
Task<Status> tell(Executor& executor, coll::Team team, int root, std::string* text);

}  // namespace gantry::mpi
