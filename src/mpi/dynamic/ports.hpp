// SPDX-License-Identifier: BSD-3-Clause
//
// Ports: sockets at which this process waits for others. A port is "host:number#word": where it listens,
// and a word that nobody guesses and that no later port at the same place has.
//
//   who connects -> word            who accepts: a wrong word is hung up on
//                <- "welcome"       when MPI_Comm_accept has taken it
//                -> "here"          and it is still there: the groups meet
#pragma once

#include "job/letters.hpp"
#include "mpi/dynamic/bridge.hpp"
#include "mpi/info/info.hpp"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::mpi {

class Ports {
  public:
    // The keys ip_address and ip_port of the standard say where.
    Result<std::string> open(const InfoPairs& info);
    Status close(std::string_view port);

    // Who knocks at a port of this process: the first with the right word who is there still.
    Task<Status> accept(Executor& executor, Engine& engine, std::string port,
                        std::unique_ptr<SocketBridge>* bridge);

  private:
    struct Guest {
        job::Letters letters;
        bool welcomed = false;
    };
    struct Port {
        job::Socket listener;
        std::string word;
        std::vector<Guest> guests;
        int accepting = 0;
        bool closed = false;
    };
    struct Wait;
    static bool look(void* self);
    static void take_new(Port& port);
    std::map<std::string, std::shared_ptr<Port>, std::less<>> ports_;
};

// To a port of another process.
Task<Status> connect_to_port(Executor& executor, Engine& engine, std::string port,
                             Nanoseconds patience, std::unique_ptr<SocketBridge>* bridge);

}  // namespace gantry::mpi
