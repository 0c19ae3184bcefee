// SPDX-License-Identifier: BSD-3-Clause
//
// Turn: blocking collectives of one communicator run one behind the other on each rank, whatever thread calls
// them. MPI wants them so from the program (MPI 5.0 section 6.14: one order for a communicator, on all ranks);
// a program of threads that all call the same operation at once gets the same here as from libraries that
// serialise calls. Without turns such calls would choose their way (a mailbox that one of them opens, say) in
// another order on each rank, and nobody could say which threads wait for whom.
//
//     mpi::Turn turn(comm);
//     return call.leave(turn.end(wait(...)));
//
// Where no other thread can come it looks at one pointer. A thread that has the turn may call from inside (a
// callback). GANTRY_CHECK=1 tells of the first call that had to wait.
#pragma once

#include "base/status.hpp"
#include "mpi/engine/boundary.hpp"

#include <utility>

namespace gantry::mpi {

struct Comm;

class Turn {
  public:
    explicit Turn(Comm& comm) {
        if (boundary_now() != nullptr) [[unlikely]]
            take(comm);
    }
    ~Turn() { give_up(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    // What follows, error handlers among it, is not part of the call.
    Status end(Status outcome) {
        give_up();
        return outcome;
    }

  private:
    void take(Comm& comm);
    void give_up() {
        if (comm_ != nullptr) [[unlikely]]
            give_back();
    }
    void give_back();

    Comm* comm_ = nullptr;  // whose turn this call has
};

}  // namespace gantry::mpi
