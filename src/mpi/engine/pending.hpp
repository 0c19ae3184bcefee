// SPDX-License-Identifier: BSD-3-Clause
//
// Pending: what a blocking MPI function still has to wait for when its body returns. `wait` is the
// only place in Gantry that waits: it drives the engine until the operation is over. In the
// simulated world the scheduler polls instead, for many engines in turn.
#pragma once

#include "base/status.hpp"
#include "base/task.hpp"
#include "p2p/request.hpp"

#include <mpi.h>

namespace gantry::mpi {

class Engine;

// Arguments of a polled condition, such as MPI_Waitany's; plain data, so that waiting allocates
// nothing.
struct Polled {
    // True when the condition holds; then `status` says how it ended.
    using Function = bool (*)(Polled& self, Status& status);
    // Whether it would be true. Changes nothing that the program sees and calls none of its
    // functions: any thread that drives the engine may ask.
    using Look = bool (*)(Polled& self);
    Function function = nullptr;
    Look look = nullptr;
    Engine* engine = nullptr;
    void* pointers[5] = {};
    int numbers[3] = {};
};

class Pending {
  public:
    // Over already.
    Pending(Status status) : status_(std::move(status)) {}
    // The same, but something of it may be held back by a transport.
    explicit Pending(Engine& engine) : engine_(&engine) {}
    // A point-to-point request which nobody else holds; `status` (may be null) receives what it
    // tells.
    Pending(Engine& engine, p2p::Request* request, MPI_Status* status)
        : kind_(Kind::request), engine_(&engine), request_(request), user_status_(status) {}
    Pending(Engine& engine, Task<Status> task);
    explicit Pending(const Polled& polled)
        : kind_(Kind::polled), engine_(polled.engine), polled_(polled) {
        GANTRY_ASSERT(polled.look != nullptr);
    }

    // Whether it is over, and if so its end; never blocks.
    bool poll();
    // Whether poll() would say true, and no more than that.
    bool ended();
    // How it ended; once poll() has said true.
    Status take() { return std::move(status_); }
    Engine* engine() const { return engine_; }

  private:
    enum class Kind { over, request, task, polled };
    Kind kind_ = Kind::over;
    Engine* engine_ = nullptr;
    p2p::Request* request_ = nullptr;
    MPI_Status* user_status_ = nullptr;
    Status status_;
    Task<Status> task_;
    Polled polled_;
};

Status wait(Pending pending);
// For a call that looks and does not wait: one turn of the engine. Other threads of the program may
// have come in when it returns.
void turn(Engine& engine);
// The same for a call that has nothing to look for: the processor is offered to other ranks only where
// they outnumber processors.
void turn_in_passing(Engine& engine);

}  // namespace gantry::mpi
