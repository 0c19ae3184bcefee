// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/engine/waiters.hpp"

#include "mpi/engine/engine.hpp"
#include "mpi/engine/program_calls.hpp"

#include <algorithm>

namespace gantry::mpi {
namespace {

// A message between two processes of a node takes a few microseconds.
constexpr Nanoseconds kLooks = 20 * kMicrosecond;
constexpr int kLooksBetweenClocks = 16;
// What a turn without an event may have ended all the same is found this many turns later.
constexpr int kQuietTurns = 16;

}  // namespace

void Waiters::wait(Pending& pending, EngineLock* others) {
    bool comes = true;
    while (!pending.poll()) {
        Executor& executor = pending.engine()->executor();
        if (program_calls_due(executor))
            make_program_calls(executor);
        else if (driver() != nullptr && !comes)
            sleep(pending);
        else
            drive(pending, others);
        comes = false;
    }
}

// Its end is looked for without poll(), which may call a function of the program: that may wait in
// turn, and needs a driver. For the same reason it ends when a collective has work for such a
// function.
void Waiters::drive(Pending& pending, EngineLock* others) {
    Engine& engine = *pending.engine();
    driver_.store(&pending, std::memory_order_relaxed);
    drives_.store(drives() + 1, std::memory_order_relaxed);
    call_ended();  // what this thread did before it began to wait
    for (int quiet = 0; !pending.ended() && !program_calls_due(engine.executor());) {
        const int events = engine.progress_waiting();
        quiet = events > 0 ? 0 : quiet + 1;
        if (quiet % kQuietTurns == 0) call_ended();
        if (engine_lock_.wanted())
            engine_lock_.step_aside();
        else
            engine.rest_unless(events > 0, others);
        if (driver() != &pending) return;  // somebody came meanwhile, and drives
    }
    driver_.store(nullptr, std::memory_order_relaxed);
    call_ended();
    if (standby_ == nullptr) call_a_driver();
}

void Waiters::sleep(Pending& pending) {
    const Clock& clock = pending.engine()->clock();
    call_ended();
    Sleeper me(pending);
    sleepers_.push_front(me);
    const bool looks = looking_ < spare_processors_;
    if (looks) ++looking_;
    if (standby_ == nullptr) standby_ = &me;
    bool is_standby = standby_ == &me;
    const Looks standby_looks =
        standby_looks_;  // read inside: an engine that begins sets them again
    engine_lock_.leave();
    // The caller holds the lock meanwhile, so that `me` lives until the word is written and the
    // sleeper woken.
    const Nanoseconds until = looks ? clock.now() + kLooks : 0;
    while (looks && me.word.load(std::memory_order_acquire) == looking && clock.now() < until)
        for (int look = 0; look < kLooksBetweenClocks && me.word.load() == looking; ++look)
            relax();
    std::uint32_t still = looking;
    if (me.word.compare_exchange_strong(still, asleep)) {
        if (is_standby && !sleep_as_standby(me, standby_looks)) {
            engine_lock_.enter();
            is_standby = driver() == nullptr;
            if (!is_standby) resign();  // the driver finds none at its end, and calls somebody
            engine_lock_.leave();
        }
        while (!is_standby && me.word.load() == asleep)
            futex::sleep_while(me.word, asleep);
    }
    engine_lock_.enter();
    if (looks) --looking_;
    const bool was_called = me.word.load() == called;
    if (is_standby && was_called) standby_ = nullptr;
    if (is_standby && !was_called) resign();
    if (!was_called) me.unlink();
    // Meant to drive, it has no more need to: another one has.
    if ((me.to_drive || is_standby) && driver() == nullptr && pending.ended()) call_a_driver();
}

// Until it is called, or nobody has driven for a while. A driver that comes again and again is looked at
// ever more seldom. False: one has driven all the time, and may go on for long.
bool Waiters::sleep_as_standby(const Sleeper& me, Looks looks) {
    Nanoseconds time = looks.first;
    for (std::uint32_t seen = drives();;) {
        futex::sleep_while(me.word, asleep, time);
        if (me.word.load() != asleep) return true;
        const std::uint32_t now = drives();
        if (now == seen && driver() == nullptr) return true;
        if (now == seen && time == looks.last) return false;
        seen = now;
        time = std::min(2 * time, looks.last);
    }
}

void Waiters::look_through() {
    for (Sleeper* each = sleepers_.front(); each != nullptr;) {
        Sleeper* next = sleepers_.next(each);
        if (each->pending.ended()) call(*each);
        each = next;
    }
}

// One that is awake comes at once; else the last to come, whose data is still in a cache.
void Waiters::call_a_driver() {
    if (sleepers_.empty()) return;
    Sleeper* chosen = sleepers_.front();
    for (Sleeper* each = chosen; each != nullptr; each = sleepers_.next(each))
        if (each->word.load() == looking) {
            chosen = each;
            break;
        }
    chosen->to_drive = true;
    call(*chosen);
}

void Waiters::resign() {
    standby_ = nullptr;
    ++deputies_resigned_;
}

void Waiters::call(Sleeper& sleeper) {
    ++calls_;
    sleeper.unlink();
    if (sleeper.word.exchange(called) == asleep) futex::wake_one(sleeper.word);
}

}  // namespace gantry::mpi
