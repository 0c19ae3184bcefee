// SPDX-License-Identifier: BSD-3-Clause
//
// Sessions and matched messages.
#pragma once

#include "mpi/errhandler/errhandler.hpp"
#include "mpi/info/info.hpp"
#include "mpi/engine/object.hpp"
#include "mpi/pt2pt/send_buffer.hpp"
#include "p2p/messenger.hpp"

#include <memory>

namespace gantry::mpi {

class Engine;

// The thread level of a session that does not ask for one: the highest that costs nothing.
inline constexpr int kThreadsUnasked = MPI_THREAD_SERIALIZED;

struct Session : Object<MPI_Session> {
    Engine* engine = nullptr;
    Errhandler* errhandler = nullptr;
    InfoPairs hints;
    int thread_level = kThreadsUnasked;
    std::shared_ptr<SendBuffer> send_buffer;  // of buffered sends on what comes from it
};

// A message between MPI_Mprobe and MPI_Mrecv.
struct Message : Object<MPI_Message> {
    Comm* comm = nullptr;
    p2p::Matched matched;
};

}  // namespace gantry::mpi
