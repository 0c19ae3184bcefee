// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/engine/progress_thread.hpp"

#include "base/blocked_signals.hpp"
#include "base/log.hpp"
#include "base/relax.hpp"
#include "mpi/engine/engine.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <ctime>
#include <system_error>

namespace gantry::mpi {
namespace {

void rest(Nanoseconds length) {
    const timespec relative{0, length};
    nanosleep(&relative, nullptr);
}

// Whether looking without a rest takes nothing from the program: two processors for each rank of
// the node, and more than one that this process may use.
bool has_spare_processor(int local_ranks) {
    cpu_set_t mine;
    const bool bound_to_one =
        sched_getaffinity(0, sizeof mine, &mine) == 0 && CPU_COUNT(&mine) == 1;
    return !bound_to_one && 2L * local_ranks <= sysconf(_SC_NPROCESSORS_ONLN);
}

}  // namespace

Status ProgressThread::start() {
    const std::string& share = engine_.config().share_copies;
    stop_.store(false);
    spare_ = has_spare_processor(engine_.job().local_size());
    if (share == "on" || (share == "auto" && spare_)) copies_ = &engine_.transfer().host_copies;
    const int failed = [this] {
        const BlockedSignals blocked;
        pthread_attr_t plain;
        pthread_attr_init(&plain);
        const int result = pthread_create(
            &thread_, &plain,
            [](void* self) -> void* {
                static_cast<ProgressThread*>(self)->run();
                return nullptr;
            },
            this);
        pthread_attr_destroy(&plain);
        return result;
    }();
    running_ = failed == 0;
    if (running_ && copies_ != nullptr) copies_->share_with(this);
    if (running_) pthread_setname_np(thread_, "gantry-progress");
    if (failed != 0)
        return failure(MPI_ERR_OTHER,
                       "no thread for GANTRY_PROGRESS=thread: {}; raise the limit of processes "
                       "(ulimit -u) or set GANTRY_PROGRESS=calls",
                       std::generic_category().message(failed));
    return success();
}

void ProgressThread::stop() {
    if (!std::exchange(running_, false)) return;
    stop_.store(true);
    bell_.ring();
    pthread_join(thread_, nullptr);
    if (copies_ != nullptr) copies_->share_with(nullptr);
}

Look ProgressThread::look() {
    Look look;
    if (!engine_lock_.try_enter()) return look;
    look.inside = true;
    look.events = engine_.progress_in_background();
    look.pending = engine_.pending();
    // What the program left is done, unless it posts something right now.
    if (!look.pending) left_pending_.store(false);
    if (engine_.submission_queue().has_posts()) look.pending = true;
    waiters_.call_ended();
    engine_lock_.leave_background();
    return look;
}

void ProgressThread::run() {
    // Naps of microseconds; the usual slack is 50 us. Concerns this thread alone.
    prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
    if (!spare_)
        log::info("mpi: the progress thread has no processor of its own; give each rank two");
    const Clock& clock = engine_.clock();
    PollingPolicy polling_policy(spare_, engine_.config().progress_awake, clock.now());
    while (!stop_.load(std::memory_order_relaxed)) {
        if (copies_one()) {
            polling_policy.happened(clock.now());
            continue;
        }
        polling_policy.looked(look(), clock.now());
        switch (polling_policy.next()) {
            case PollingPolicy::Next::look: break;
            case PollingPolicy::Next::watch: watch(); break;
            case PollingPolicy::Next::rest: rest(PollingPolicy::kFirstNap); break;
            case PollingPolicy::Next::sleep: sleep(polling_policy); break;
        }
    }
}

// Reads words of its own only: the lock's would be fetched away from the program at every call.
void ProgressThread::watch() {
    const Clock& clock = engine_.clock();
    const Nanoseconds until = clock.now() + PollingPolicy::kWatch;
    while (!left_pending_.load(std::memory_order_relaxed) && !stop_.load() && clock.now() < until &&
           !copies_one())
        relax();
}

void ProgressThread::sleep(PollingPolicy& polling_policy) {
    // What comes between here and the sleep rings: the program gives up the lock first and then looks
    // whether we are asleep.
    const Bell::Ticket ticket = bell_.listen();
    const bool copied = copies_one();
    const Look seen = look();
    if (copied || seen.events > 0 || stop_.load()) {
        bell_.stay_awake();
        polling_policy.happened(engine_.clock().now());
    } else if (bell_.sleep(ticket, polling_policy.nap(seen.pending))) {
        polling_policy.happened(engine_.clock().now());
    }
}

}  // namespace gantry::mpi
