// SPDX-License-Identifier: BSD-3-Clause
//
// ProgressThread: drives the engine while no thread of the program is inside MPI
// (GANTRY_PROGRESS=thread), so that a message goes on while the program computes. The engine stays
// single-threaded: the Gate at the MPI boundary lets one in at a time.
//
//   awake    right after something happened or was started: looks again and again, for kAwake
//   napping  something is pending, but nothing happens: sleeps for kFirstNap, and then for longer
//            and longer, up to kLongestNap
//   asleep   nothing is pending, or the program is inside MPI and drives the engine itself: sleeps
//            until a call of MPI leaves something pending, and looks every kIdleNap all the same
//            (a peer that died, memory that was freed)
//
// While the program is inside MPI it copies: pieces between pageable memory and slots that the
// engine offers (p2p/host_copies.hpp, GANTRY_SHARE_COPIES). For that it needs no gate.
//
// On a node with more of these threads and ranks than processors, and where the process is bound to
// one, it rests between its looks when awake, too.
#pragma once

#include "base/bell.hpp"
#include "base/gate.hpp"
#include "base/status.hpp"
#include "base/units.hpp"
#include "p2p/host_copies.hpp"

#include <pthread.h>

#include <atomic>

namespace gantry::mpi {

class Engine;

class ProgressThread final : public p2p::CopyHelper {
  public:
    static constexpr Nanoseconds kAwake = 50 * kMicrosecond;
    static constexpr Nanoseconds kFirstNap = 5 * kMicrosecond;
    static constexpr Nanoseconds kLongestNap = 100 * kMicrosecond;
    static constexpr Nanoseconds kIdleNap = 10 * kMillisecond;

    // Both outlive the thread.
    ProgressThread(Engine& engine, Gate& gate) : engine_(engine), gate_(gate) {}
    ProgressThread(const ProgressThread&) = delete;
    ProgressThread& operator=(const ProgressThread&) = delete;
    ~ProgressThread() { stop(); }

    // MPI_ERR_OTHER when the system gives no thread.
    Status start();
    // Ends and joins it; may be called inside the gate, and again.
    void stop();
    // The program leaves something pending, or a piece waits to be copied.
    void call() override { bell_.ring(); }

  private:
    struct Look {
        bool inside = false;  // false: the program is
        int events = 0;
        bool pending = false;
    };
    void run();
    Look look();
    bool copies_one() { return copies_ != nullptr && copies_->help(); }

    Engine& engine_;
    Gate& gate_;
    Bell bell_;
    std::atomic<bool> stop_{false};
    pthread_t thread_{};
    bool running_ = false;
    bool spare_ = false;                 // it has a processor beside the program's
    p2p::HostCopies* copies_ = nullptr;  // null: it does not share them
};

}  // namespace gantry::mpi
