// SPDX-License-Identifier: BSD-3-Clause
// When operations run. An operation is ready when the one before it in its stream, and all it waits
// for, are done; it is then *planned*: its engine is taken for [start, end) in modelled time. Its
// effect on memory is applied so that it finishes at `end`: a target read too early is stale and a
// source overwritten too early spoils the copy, every time. Times are virtual, so late scheduling
// does not add up.
//
// A thread per process does the work; query and synchronise calls of the program help (unless
// help=0), because two pollers and two such threads on two cores would otherwise wait for each
// other.
#pragma once

#include <memory>
#include <vector>

#include "lock.hpp"
#include "objects.hpp"

namespace simgpu {

struct Driver;

class Scheduler {
  public:
    explicit Scheduler(Driver& driver) : driver_(driver) {}

    // All with the driver's lock held.
    OpRef enqueue(Stream& stream, std::shared_ptr<Op> op);
    // Runs one operation that is due. False when there is none.
    bool help() { return step().ran; }
    // What a query does before it looks: one operation, unless helping is off.
    void help_a_query();
    // Blocks until the operation is done; what a call that must wait does.
    void wait(const OpRef& op);
    void wait_until(const std::function<bool()>& condition);
    void wait_for_stream(Stream& stream);
    void wait_for_context(Context& context);
    void wait_for_all();

    // Operations done so far, newest last, bounded: what simgpu_ops and the trace show.
    struct Done {
        OpKind kind;
        std::size_t bytes;
        int device;
        std::uint64_t stream;
        Nanoseconds enqueued, start, end;
    };
    const std::vector<Done>& history() const { return history_; }
    void clear_history() { history_.clear(); }
    std::uint64_t operations() const { return operations_; }

    // Fault injection: the n-th operation, or n-th recorded event, from now on.
    void fail_operation(std::uint64_t n, CUresult code) {
        fail_at_ = operations_ + n, code_ = code;
    }
    void never_complete_event(std::uint64_t n) { never_event_ = n; }

    void stop();

  private:
    enum class Sleep { until_notified, until_wake, polling };
    struct Next {
        Op* op = nullptr;  // due now; else sleep like this and look again
        Sleep sleep = Sleep::until_notified;
        Nanoseconds wake = 0;
    };
    struct Step {
        bool ran = false;
        Next next;
    };
    bool helping() const;
    Next plan();
    Step step();
    void run(Op& op);
    void finish(const OpRef& op);
    void wait_unless_stuck(Stream& stream);
    bool can_plan(Op& op, Nanoseconds* ready);
    void start_thread();
    void loop();
    static void* thread_main(void* self);

    Driver& driver_;
    Condition changed_;
    std::vector<Stream*> active_;  // streams with operations
    std::vector<Done> history_;
    std::uint64_t operations_ = 0;
    std::uint64_t fail_at_ = 0;
    CUresult code_ = CUDA_SUCCESS;
    std::uint64_t never_event_ = 0;
    Nanoseconds thread_wakes_at_ = 0;  // of the sleeping scheduler thread; 0 while it runs
    bool thread_started_ = false;
    bool stopping_ = false;
};

}  // namespace simgpu
