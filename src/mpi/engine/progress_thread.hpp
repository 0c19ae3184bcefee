// SPDX-License-Identifier: BSD-3-Clause
//
// ProgressThread: drives the engine while no thread of the program is inside MPI
// (GANTRY_PROGRESS=thread), so that a message goes on while the program computes. The engine stays
// single-threaded: the EngineLock at the MPI boundary lets one in at a time.
//
//   awake    something happened or was started lately: looks again and again
//   napping  something is pending, but nothing happens: sleeps for longer and longer
//   asleep   nothing is pending, or the program is inside MPI and drives the engine itself: sleeps
//            until a call of MPI leaves something pending, and looks now and then all the same
//            (a peer that died, memory that was freed)
//
// How long each lasts: mpi/engine/polling_policy.hpp.
//
// While the program is inside MPI it copies: pieces between pageable memory and slots that the
// engine offers (transfer/host_copies.hpp, GANTRY_SHARE_COPIES). For that it needs no lock.
//
// On a node with more of these threads and ranks than processors, and where the process is bound to
// one, it rests between its looks when awake, too.
#pragma once

#include "base/bell.hpp"
#include "base/engine_lock.hpp"
#include "base/status.hpp"
#include "mpi/engine/polling_policy.hpp"
#include "mpi/engine/waiters.hpp"
#include "transfer/host_copies.hpp"

#include <pthread.h>

#include <atomic>

namespace gantry::mpi {

class Engine;

class ProgressThread final : public transfer::CopyHelper {
  public:
    // All outlive the thread.
    ProgressThread(Engine& engine, EngineLock& lock, Waiters& waiters)
        : engine_(engine), engine_lock_(lock), waiters_(waiters) {}
    ProgressThread(const ProgressThread&) = delete;
    ProgressThread& operator=(const ProgressThread&) = delete;
    ~ProgressThread() { stop(); }

    // MPI_ERR_OTHER when the system gives no thread.
    Status start();
    // Ends and joins it; may be called with the lock held, and again.
    void stop();
    // Whether it looks at the engine by itself very soon, on a processor that the program does not
    // use; only a guess about the next moment.
    bool watches() const { return spare_ && running_ && bell_.nobody_sleeps(); }
    // The program has given up the lock, something pending behind it or not.
    void left(bool pending) {
        if (left_pending_.load() != pending) left_pending_.store(pending);
        if (pending) bell_.ring();
    }
    // A piece waits to be copied.
    void call() override { bell_.ring(); }

  private:
    void run();
    Look look();
    void watch();
    void sleep(PollingPolicy& polling_policy);
    bool copies_one() { return copies_ != nullptr && copies_->help(); }

    Engine& engine_;
    EngineLock& engine_lock_;
    Waiters& waiters_;
    Bell bell_;
    std::atomic<bool> stop_{false};
    alignas(64) std::atomic<bool> left_pending_{false};
    alignas(64) pthread_t thread_{};
    bool running_ = false;
    bool spare_ = false;                      // it has a processor beside the program's
    transfer::HostCopies* copies_ = nullptr;  // null: it does not share them
};

}  // namespace gantry::mpi
