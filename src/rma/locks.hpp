// SPDX-License-Identifier: BSD-3-Clause
//
// Locks: passive target, and the lock that every change of items holds (control.hpp).
#pragma once

#include "rma/lock_queue.hpp"
#include "rma/window_part.hpp"

#include <deque>

namespace gantry::rma {

class Locks : public WindowPart {
  public:
    explicit Locks(Window& its_window) : WindowPart(its_window) {}

    Task<Status> lock(Executor& executor, int of_rank, Lock kind);
    Task<Status> unlock(Executor& executor, int of_rank);
    Task<Status> lock_all(Executor& executor, Lock kind);
    Task<Status> unlock_all(Executor& executor);

    // --- of ranks of other nodes, at the target
    void ask_for_lock(int from, wire::LockKind kind);
    // Gives locks to those who wait for them; how many.
    int grant_locks();
    bool anybody_waits() const { return !lock_requests_.empty(); }
    // What that rank, of another node, holds of this one's part.
    void take_lock_from(int from);
    // That rank takes no part any more.
    void forget(int of_rank);
    // Before this rank leaves after a failure: those that it holds. Unlocking could wait for who is lost.
    void give_all_back();

    // --- of changes: held for one piece of an operation, so most find it free or wait for a moment
    bool try_accumulate(ControlBlock& control) const;
    Task<Status> lock_accumulates(Executor& executor, ControlBlock& control);

  private:
    Task<Status> acquire(Executor& executor, int of_rank, Lock kind);
    LockQueue lock_queue(const Target& of) const;
    bool is_my_turn(const Target& of, LockWait& wait, std::size_t place);
    bool try_lock_word(Target& of, Lock kind);
    // What ranks of the node hold of that target and are lost is given back.
    Status release_of_the_lost(const Target& of);
    void release_accumulates_of_the_lost(ControlBlock& control);
    bool is_lost(std::size_t local) const;
    Task<Status> wait_for_word(Executor& executor, Target& of, Lock kind);
    bool try_grant(std::size_t request);
    void refuse_writers();
    void show_lock_requests();
    Status give_back(int of_rank);

    struct LockRequest {
        int from;
        LockWait wait;
    };
    std::deque<LockRequest> lock_requests_;  // of other nodes, oldest first
};

}  // namespace gantry::rma
