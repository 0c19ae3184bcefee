// SPDX-License-Identifier: BSD-3-Clause
#include "scheduler.hpp"

#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <limits>

#include "driver.hpp"
#include "sanitizer.hpp"

namespace simgpu {
namespace {

constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();
constexpr Nanoseconds kPoll = 20'000;  // between looks at value waits and events of other processes
constexpr Nanoseconds kSpin =
    30'000;  // the last part of a wait is spun: sleeping is not that exact
constexpr double kHostBytesPerNs =
    5.0;  // what one core copies: the effect starts that much before `end`
constexpr std::size_t kHistory = 1u << 16;

Nanoseconds movement_begins(const Op& op) {
    return op.end - static_cast<Nanoseconds>(static_cast<double>(op.bytes) / kHostBytesPerNs);
}

bool all_done(const std::vector<OpRef>& operations) {
    return std::all_of(operations.begin(), operations.end(),
                       [](const OpRef& op) { return op->state == OpState::done; });
}

}  // namespace

OpRef Scheduler::enqueue(Stream& stream, OpRef op) {
    op->stream = &stream;
    if (op->enqueued == 0) {
        op->enqueued = clock_now();
    }
    if (stream.is_default) {
        // The legacy stream waits for every blocking stream, and they wait for it.
        for (Stream* other : stream.context->streams) {
            if (other != &stream && other->blocking() && !other->queue.empty()) {
                op->after.push_back(other->tail);
            }
        }
    } else if (stream.blocking() && !stream.context->legacy->queue.empty()) {
        op->after.push_back(stream.context->legacy->tail);
    }
    if (op->kind == OpKind::event && never_event_ != 0 && --never_event_ == 0) {
        op->never_completes = true;
    }
    sanitizer::release(op.get());
    if (stream.queue.empty()) {
        active_.push_back(&stream);
    }
    stream.queue.push_back(op);
    stream.tail = op;
    if (!thread_started_) {
        start_thread();
    } else if (thread_wakes_at_ > op->enqueued + op->cost.launch) {
        changed_.notify_all();
    }
    return op;
}

bool Scheduler::can_plan(Op& op, Nanoseconds* ready) {
    if (op.never_completes || !all_done(op.after)) {
        return false;
    }
    *ready = std::max({op.enqueued + op.cost.launch, op.stream->last_end, op.not_before});
    for (const OpRef& before : op.after) {
        *ready = std::max(*ready, before->end);
    }
    if (op.ready) {
        if (!op.ready()) {
            return false;
        }
        op.not_before = clock_now();
        *ready = std::max(*ready, op.not_before);
        op.ready = nullptr;
    }
    return true;
}

Scheduler::Next Scheduler::plan() {
    const Nanoseconds now = clock_now();
    Next next{nullptr, Sleep::until_notified, kNever};
    const auto wake_at = [&next](Nanoseconds when) {
        next.wake = std::min(next.wake, when);
        next.sleep = Sleep::until_wake;
    };
    bool polling = false;
    // Engines are taken in the order of ready times, so that streams share them as hardware queues
    // do.
    for (;;) {
        Op* first = nullptr;
        Nanoseconds first_ready = kNever;
        for (Stream* stream : active_) {
            Op& op = *stream->queue.front();
            Nanoseconds ready = 0;
            if (op.state != OpState::queued) {
                continue;
            }
            if (!can_plan(op, &ready)) {
                polling |= op.ready && !op.never_completes;
                continue;
            }
            if (ready > now) {
                wake_at(ready);
            } else if (ready < first_ready) {
                first = &op;
                first_ready = ready;
            }
        }
        if (first == nullptr) {
            break;
        }
        const Device& device = *first->stream->context->device;
        const Interval interval =
            driver_.model.timed() ? driver_.page.reserve(device.physical, first->cost, first_ready,
                                                         driver_.model.turn_price())
                                  : Interval{first_ready, first_ready};
        first->start = interval.start;
        first->end = interval.end;
        first->state = OpState::planned;
    }
    Nanoseconds earliest = kNever;
    for (Stream* stream : active_) {
        Op& op = *stream->queue.front();
        if (op.state == OpState::planned && movement_begins(op) < earliest) {
            earliest = movement_begins(op);
            next.op = &op;
        }
    }
    if (next.op != nullptr && earliest > now) {
        next.op = nullptr;
        wake_at(earliest);
    }
    if (polling && next.wake > now + kPoll) {
        next.wake = now + kPoll;
        next.sleep = Sleep::polling;
    }
    return next;
}

void Scheduler::run(Op& op) {
    const OpRef keep = op.stream->queue.front();
    op.state = OpState::running;
    ++operations_;
    Context& context = *op.stream->context;
    if (fail_at_ != 0 && operations_ == fail_at_) {
        context.sticky = code_;
    }
    CUresult result = CUDA_SUCCESS;
    sanitizer::acquire(&op);
    sanitizer::acquire(op.stream);
    for (const OpRef& before : op.after) {
        sanitizer::acquire(before.get());
    }
    if (op.effect && context.sticky == CUDA_SUCCESS) {
        Unguard unguard(driver_.mutex);
        {
            sanitizer::Visible visible;
            result = op.effect();
        }
        while (driver_.model.timed() && clock_now() < op.end) {
            sched_yield();
        }
    }
    for (void* waited_on : {static_cast<void*>(&op), static_cast<void*>(op.stream),
                            static_cast<void*>(&context), static_cast<void*>(&driver_)}) {
        sanitizer::release(waited_on);
    }
    if (result != CUDA_SUCCESS) {
        context.sticky = result;
    }
    finish(keep);
}

void Scheduler::finish(const OpRef& op) {
    Stream& stream = *op->stream;
    if (op->runs_on == RunsOn::own_thread || !driver_.model.timed()) {
        // User code ends when it ends, and without a model time is what the clock says.
        op->end = std::max(op->end, clock_now());
    }
    op->effect = nullptr;
    op->after.clear();
    op->state = OpState::done;
    stream.last_end = op->end;
    stream.queue.pop_front();
    if (history_.size() < kHistory) {
        history_.push_back({op->kind, op->bytes, stream.context->device->ordinal, stream.id,
                            op->enqueued, op->start, op->end});
    }
    if (stream.queue.empty()) {
        std::erase(active_, &stream);
        if (stream.destroyed && stream.context->alive) {
            // Destroyed with work pending: it was let finish.
            std::erase(stream.context->streams, &stream);
            delete &stream;
        }
    }
    changed_.notify_all();
}

namespace {

struct OwnThread {
    Scheduler* scheduler;
    void (Scheduler::*run)(Op&);
    Op* op;
    Mutex* mutex;
};

void* own_thread_main(void* argument) {
    const std::unique_ptr<OwnThread> work(static_cast<OwnThread*>(argument));
    const sanitizer::Hidden hidden;
    ThreadState thread;
    thread.in_callback = true;
    adopt_thread_state(&thread);
    Guard guard(*work->mutex);
    (work->scheduler->*work->run)(*work->op);
    return nullptr;
}

// The program's signals are not ours to handle.
bool spawn(void* (*entry)(void*), void* argument) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    const bool started = pthread_create(&thread, nullptr, entry, argument) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (started) {
        pthread_detach(thread);
    }
    return started;
}

}  // namespace

Scheduler::Step Scheduler::step() {
    const Next next = plan();
    if (next.op == nullptr) {
        return {false, next};
    }
    if (next.op->runs_on == RunsOn::own_thread) {
        next.op->state = OpState::running;
        auto* work = new OwnThread{this, &Scheduler::run, next.op, &driver_.mutex};
        if (spawn(own_thread_main, work)) {
            return {true, next};
        }
        delete work;
    }
    run(*next.op);
    return {true, next};
}

bool Scheduler::helping() const {
    return driver_.settings.help == Help::inline_on_caller && !sanitizer::watching();
}

void Scheduler::help_a_query() {
    if (helping()) {
        help();
    }
}

void Scheduler::wait_until(const std::function<bool()>& condition) {
    while (!condition()) {
        if (!helping() || !help()) {
            changed_.wait_until(driver_.mutex, clock_now() + kPoll);
        }
    }
}

void Scheduler::wait(const OpRef& op) {
    while (op->state != OpState::done) {
        if (helping() && help()) {
            continue;
        }
        const Nanoseconds now = clock_now();
        if (op->state == OpState::planned && op->end - now < kSpin && op->end > now) {
            Unguard unguard(driver_.mutex);
            sched_yield();
        } else {
            const Nanoseconds nap = op->state == OpState::planned ? op->end - now - kSpin : kPoll;
            changed_.wait_until(driver_.mutex, now + std::max(nap, kPoll));
        }
    }
    sanitizer::acquire(op.get());
}

void Scheduler::wait_for_stream(Stream& stream) {
    if (const OpRef tail = stream.tail) {
        wait(tail);
    }
}

namespace {

// Behind an event that was made never to complete; freeing memory must not hang on it.
bool stuck(const Stream& stream) {
    return !stream.queue.empty() && stream.queue.front()->never_completes;
}

}  // namespace

// Waiting releases the lock: streams may come and go meanwhile, so both walk over a copy.
void Scheduler::wait_for_context(Context& context) {
    const std::vector<Stream*> streams = context.streams;
    for (Stream* stream : streams) {
        if (std::find(active_.begin(), active_.end(), stream) != active_.end()) {
            wait_unless_stuck(*stream);
        }
    }
    sanitizer::acquire(&context);
}

void Scheduler::wait_for_all() {
    const std::vector<Stream*> streams = active_;
    for (Stream* stream : streams) {
        if (std::find(active_.begin(), active_.end(), stream) != active_.end()) {
            wait_unless_stuck(*stream);
        }
    }
    sanitizer::acquire(&driver_);
}

void Scheduler::wait_unless_stuck(Stream& stream) {
    // A destroyed stream is deleted after its tail is done, so it is there as long as this looks at
    // it.
    const OpRef tail = stream.tail;
    while (tail->state != OpState::done && !stuck(stream)) {
        const OpRef head = stream.queue.front();
        wait(head);
    }
}

void Scheduler::start_thread() {
    thread_started_ = true;
    spawn(thread_main, this);
}

void* Scheduler::thread_main(void* self) {
    const sanitizer::Hidden hidden;
    static_cast<Scheduler*>(self)->loop();
    return nullptr;
}

void Scheduler::loop() {
    Guard guard(driver_.mutex);
    while (!stopping_) {
        const Step done = step();
        if (done.ran) {
            continue;
        }
        const Nanoseconds now = clock_now();
        const Nanoseconds wake = done.next.wake;
        if (done.next.sleep == Sleep::until_notified) {
            thread_wakes_at_ = kNever;
            changed_.wait(driver_.mutex);
        } else if (done.next.sleep == Sleep::polling || wake - now > kSpin) {
            thread_wakes_at_ = done.next.sleep == Sleep::polling ? wake : wake - kSpin;
            changed_.wait_until(driver_.mutex, thread_wakes_at_);
        } else if (wake > now) {
            Unguard unguard(driver_.mutex);
            sched_yield();
        }
        thread_wakes_at_ = 0;
    }
}

void Scheduler::stop() {
    stopping_ = true;
    changed_.notify_all();
}

}  // namespace simgpu
