// SPDX-License-Identifier: BSD-3-Clause
//
// Boundary: what every call of MPI passes when the program's threads are not alone with the engine
// (GANTRY_PROGRESS=thread). Without it the process has none, and a call looks at one pointer.
//
//     { const Visit visit;  ... the call ... }
//
// Functions of the program (error handlers, callbacks of attributes and generalized requests) are
// called by the thread that is in the call. Meanwhile nobody else drives the engine; they may call
// MPI themselves.
#pragma once

#include "base/gate.hpp"
#include "base/status.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/engine/progress_thread.hpp"

namespace gantry::mpi {

class Boundary {
  public:
    explicit Boundary(Engine& engine);

    void enter();
    void leave();
    // Whether a call may go without entering: it is not one inside another, and nothing of the
    // program's runs in the background, which may hold the handles that the call holds, too.
    bool may_stay_outside() const;
    // Whether such a call may leave its message in the engine's postbox; then posted() tells the
    // thread.
    bool takes_posts() const;
    void posted() { thread_.left(true); }

    Status start() { return thread_.start(); }
    void stop() { thread_.stop(); }

  private:
    enum class HandsOver : std::uint8_t { never, while_watched, always };

    Engine& engine_;
    const HandsOver hands_over_;
    Gate gate_;
    ProgressThread thread_;
};

// The calling thread's stay inside MPI. A call may raise the boundary (MPI_Init) or take it down
// (MPI_Finalize); whoever does so keeps this balanced.
class Visit {
  public:
    Visit() {
        if (process().boundary != nullptr) [[unlikely]]
            process().boundary->enter();
    }
    ~Visit() {
        if (process().boundary != nullptr) [[unlikely]]
            process().boundary->leave();
    }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
};

// Raises the boundary around this engine if it is configured so, with the calling thread inside.
Status raise_boundary(Engine& engine);
// Ends the thread and takes the boundary down; the calling thread is inside. Nothing without one.
void drop_boundary();

}  // namespace gantry::mpi
