// SPDX-License-Identifier: BSD-3-Clause
#include "job/death_signal.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace gantry::job::death_signal {

// What the handler knows, and all that it sets.
struct Signalled {
    std::atomic<int> launcher{0};
    std::atomic<bool> somebody_died{false};
};
Signalled signalled;

namespace {

static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void on_signal(int, siginfo_t* info, void*) {
    const int launcher = signalled.launcher.load(std::memory_order_relaxed);
    if (launcher == 0 || info->si_pid == launcher)
        signalled.somebody_died.store(true, std::memory_order_relaxed);
    else
        hand_on();
}

bool is_ours(const struct sigaction& action) {
    return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == &on_signal;
}

}  // namespace

bool take(int launcher) {
    struct sigaction now {};
    if (sigaction(SIGUSR1, nullptr, &now) != 0) return false;
    const bool left_alone = (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL;
    if (!left_alone && !is_ours(now)) return false;
    signalled.launcher.store(launcher, std::memory_order_relaxed);
    struct sigaction wanted {};
    wanted.sa_sigaction = &on_signal;
    wanted.sa_flags = SA_RESTART | SA_SIGINFO;
    return sigaction(SIGUSR1, &wanted, nullptr) == 0;
}

bool came() {
    return signalled.somebody_died.exchange(false, std::memory_order_relaxed);
}

// Also called by the handler: what comes again then waits until it returns.
void hand_on() {
    struct sigaction now {};
    if (sigaction(SIGUSR1, nullptr, &now) == 0 && is_ours(now)) {
        struct sigaction as_before {};
        as_before.sa_handler = SIG_DFL;
        sigaction(SIGUSR1, &as_before, nullptr);
    }
    kill(getpid(), SIGUSR1);
}

}  // namespace gantry::job::death_signal
