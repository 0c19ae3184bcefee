// SPDX-License-Identifier: BSD-3-Clause
//
// Passive target: the lock words of control blocks (control.hpp). Ranks of the target's node take the
// lock themselves; ranks elsewhere ask, and the target takes it for them. All of them in the order in
// which they came (lock_queue.hpp).
#include "base/first_failure.hpp"
#include "rma/windows.hpp"

#include <sched.h>

namespace gantry::rma {
namespace {

void unlock_word(ControlBlock& control, Lock kind) {
    if (kind == Lock::exclusive)
        control.unlock_exclusive();
    else
        control.unlock_shared();
}

}  // namespace

LockQueue Locks::lock_queue(const Target& of) const {
    return {*of.control, window.node_memory.waiting_places(of.local)};
}

bool Locks::try_lock_word(Target& of, Lock kind) {
    if (kind == Lock::exclusive) return of.control->try_lock_exclusive(rank());
    if (of.control->exclusive_holder() >= 0) return false;
    std::atomic_ref<Share> mine_of_it = window.node_memory.share(of.local, window.self);
    mine_of_it.store(Share::changes, std::memory_order_relaxed);
    const bool locked = of.control->try_lock_shared();
    mine_of_it.store(locked ? Share::holds : Share::none, std::memory_order_release);
    return locked;
}

bool Locks::is_lost(std::size_t local) const {
    return !windows.lost(target(window.local_ranks[local]).peer).ok();
}

// A failure: a rank died as it took or gave back its share, so the lock may never be free again. What ranks
// of other nodes hold is given back by the target, which has taken it for them.
Status Locks::release_of_the_lost(const Target& of) {
    if (window.lost.ok()) return success();
    Status unknown;
    for (std::size_t i = 0; i < window.local_ranks.size(); ++i) {
        if (!is_lost(i)) continue;
        lock_queue(of).show(i, 0);
        of.control->unlock_exclusive_of(window.local_ranks[i]);
        std::atomic_ref<Share> its = window.node_memory.share(of.local, i);
        Share held = Share::holds;
        if (its.compare_exchange_strong(held, Share::none, std::memory_order_acq_rel))
            of.control->unlock_shared();
        else if (held == Share::changes)
            unknown = windows.lost(target(window.local_ranks[i]).peer);
    }
    return unknown;
}

// `place`: where that one stands itself. Who was lost stands in nobody's way.
bool Locks::is_my_turn(const Target& of, LockWait& wait, std::size_t place) {
    const LockQueue queue = lock_queue(of);
    const bool behind = queue.somebody_in_front(wait, [this, place](std::size_t other) {
        if (other == place) return true;
        return !window.lost.ok() && other < window.local_ranks.size() && is_lost(other);
    });
    return !behind || (wait.number != 0 && queue.has_waited_enough(wait, windows.executor().now()));
}

Task<Status> Locks::wait_for_word(Executor& executor, Target& of, Lock kind) {
    LockQueue queue = lock_queue(of);
    LockWait wait{.exclusive = kind == Lock::exclusive};
    if (is_my_turn(of, wait, window.self) && try_lock_word(of, kind)) co_return success();
    wait = queue.take_number(wait.exclusive);
    queue.show(window.self, wait.number);
    bool locked = false;
    Status failed;
    Status waited = co_await windows.until(executor, [this, &of, &wait, kind, &locked, &failed] {
        locked = of.gone.ok() && is_my_turn(of, wait, window.self) && try_lock_word(of, kind);
        if (locked) return true;
        failed = of.gone;
        // Whoever waits shared goes on, also where nobody knows who else shares.
        Status unknown = release_of_the_lost(of);
        if (failed.ok() && kind == Lock::exclusive) failed = std::move(unknown);
        return !failed.ok();
    });
    queue.show(window.self, 0);
    GANTRY_CO_TRY(waited);
    co_return failed;
}

Task<Status> Locks::acquire(Executor& executor, int of_rank, Lock kind) {
    Target& of = target(of_rank);
    if (!of.gone.ok()) co_return of.gone;
    if (kind == Lock::unchecked) co_return success();
    if (of.control != nullptr) {
        Status locked = co_await wait_for_word(executor, of, kind);
        co_return locked;
    }
    of.granted = false;
    of.refused = success();
    Status asked = window.send_behind_batch(
        of_rank, wire::kLock,
        wire::Lock{{},
                   kind == Lock::exclusive ? wire::LockKind::exclusive : wire::LockKind::shared});
    GANTRY_CO_TRY(asked);
    Status waited = co_await windows.until(
        executor, [&of] { return of.granted || !of.refused.ok() || !of.gone.ok(); });
    GANTRY_CO_TRY(waited);
    if (of.granted) co_return success();
    co_return of.refused.ok() ? of.gone : of.refused;
}

Status Locks::give_back(int of_rank) {
    Target& of = target(of_rank);
    const Lock kind = std::exchange(of.lock, Lock::none);
    if (kind == Lock::none || kind == Lock::unchecked) return success();
    if (of.control == nullptr) return window.signal(of_rank, wire::kUnlock);
    std::atomic_ref<Share> mine_of_it = window.node_memory.share(of.local, window.self);
    if (kind == Lock::shared) mine_of_it.store(Share::changes, std::memory_order_relaxed);
    unlock_word(*of.control, kind);
    if (kind == Lock::shared) mine_of_it.store(Share::none, std::memory_order_release);
    if (of_rank == rank()) grant_locks();
    return success();
}

void Locks::ask_for_lock(int from, wire::LockKind kind) {
    const bool exclusive = kind == wire::LockKind::exclusive;
    lock_requests_.push_back({from, lock_queue(mine()).take_number(exclusive)});
    if (grant_locks() == 0) show_lock_requests();
}

// Whether that request is granted: none before it may be in its way either.
bool Locks::try_grant(std::size_t request) {
    LockRequest& asks = lock_requests_[request];
    LockQueue queue = lock_queue(mine());
    bool turn = is_my_turn(mine(), asks.wait, window.local_ranks.size());
    for (std::size_t before = 0; turn && before < request; ++before)
        turn = !LockQueue::goes_first(lock_requests_[before].wait.number, asks.wait) ||
               queue.has_waited_enough(asks.wait, windows.executor().now());
    Target& of = target(asks.from);
    const Lock kind = asks.wait.exclusive ? Lock::exclusive : Lock::shared;
    ControlBlock& control = *mine().control;
    const auto locked = [&] {
        return kind == Lock::exclusive ? control.try_lock_exclusive(asks.from)
                                       : control.try_lock_shared();
    };
    if (!turn || !locked()) return false;
    of.holds = kind;
    return true;
}

int Locks::grant_locks() {
    int granted = 0;
    if (!release_of_the_lost(mine()).ok()) refuse_writers();
    for (std::size_t request = 0; request < lock_requests_.size();) {
        if (!try_grant(request)) {
            ++request;
            continue;
        }
        const int from = lock_requests_[request].from;
        lock_requests_.erase(lock_requests_.begin() + static_cast<std::ptrdiff_t>(request));
        Status told = window.signal(from, wire::kGranted);
        if (!told.ok()) take_lock_from(from);
        ++granted;
    }
    if (granted > 0) show_lock_requests();
    return granted;
}

// They would wait for ever.
void Locks::refuse_writers() {
    std::erase_if(lock_requests_, [this](const LockRequest& each) {
        if (!each.wait.exclusive) return false;
        static_cast<void>(window.signal(each.from, wire::kLockRefused));  // unless it is gone, too
        return true;
    });
    show_lock_requests();
}

void Locks::show_lock_requests() {
    std::uint32_t together = 0;
    for (const LockRequest& each : lock_requests_)
        together = LockQueue::together(together, each.wait.number);
    lock_queue(mine()).show(window.local_ranks.size(), together);
}

void Locks::forget(int of_rank) {
    std::erase_if(lock_requests_,
                  [of_rank](const LockRequest& each) { return each.from == of_rank; });
    if (mine().control == nullptr) return;  // the window is not made yet
    take_lock_from(of_rank);
    show_lock_requests();
}

void Locks::give_all_back() {
    for (int of_rank = 0; of_rank < size(); ++of_rank)
        static_cast<void>(give_back(of_rank));  // whoever is gone needs no lock
}

void Locks::take_lock_from(int from) {
    const Lock kind = std::exchange(target(from).holds, Lock::none);
    if (kind != Lock::none) unlock_word(*mine().control, kind);
}

Task<Status> Locks::lock(Executor& executor, int of_rank, Lock kind) {
    GANTRY_CO_TRY(window.revoked);
    Status legal = window.synchronisation.check_may_lock("MPI_Win_lock");
    GANTRY_CO_TRY(legal);
    Target& of = target(of_rank);
    if (of.lock != Lock::none || of.asks || window.epochs.lock_all)
        co_return failure(MPI_ERR_RMA_SYNC,
                          "MPI_Win_lock: rank {} is locked by this process already", of_rank);
    of.asks = true;
    Status locked = co_await acquire(executor, of_rank, kind);
    of.asks = false;
    GANTRY_CO_TRY(locked);
    of.lock = kind;
    ++window.epochs.locks;
    co_return success();
}

Task<Status> Locks::unlock(Executor& executor, int of_rank) {
    Target& of = target(of_rank);
    if (of.lock == Lock::none || window.epochs.lock_all)
        co_return failure(MPI_ERR_RMA_SYNC, "MPI_Win_unlock: rank {} is not locked by MPI_Win_lock",
                          of_rank);
    Status ended = co_await window.synchronisation.complete_at(executor, of_rank);
    FirstFailure failed;
    failed.note(window.revoked);
    failed.note(std::move(ended));
    failed.note(give_back(of_rank));
    --window.epochs.locks;
    co_return failed.status();
}

Task<Status> Locks::lock_all(Executor& executor, Lock kind) {
    GANTRY_CO_TRY(window.revoked);
    Status legal = window.synchronisation.check_may_lock("MPI_Win_lock_all");
    GANTRY_CO_TRY(legal);
    if (window.epochs.locks > 0 || window.epochs.lock_all)
        co_return failure(MPI_ERR_RMA_SYNC,
                          "MPI_Win_lock_all: this process holds a lock of this window already");
    FirstFailure failed;
    Scope locks(executor);
    for (int of_rank = 0; of_rank < size(); ++of_rank)
        locks.spawn(acquire(executor, of_rank, kind));
    Status all = co_await locks.join(executor);
    failed.note(std::move(all));
    // Nothing is given back of whom it could not have.
    for (const auto& each : window.targets)
        each->lock = each->gone.ok() ? kind : Lock::unchecked;
    window.epochs.lock_all = true;
    window.epochs.locks = size();
    co_return failed.status();
}

Task<Status> Locks::unlock_all(Executor& executor) {
    if (!window.epochs.lock_all)
        co_return failure(MPI_ERR_RMA_SYNC,
                          "MPI_Win_unlock_all without MPI_Win_lock_all before it");
    FirstFailure failed;
    failed.note(window.revoked);
    Status ended = co_await window.synchronisation.complete_everywhere(executor);
    failed.note(std::move(ended));
    for (int of_rank = 0; of_rank < size(); ++of_rank)
        failed.note(give_back(of_rank));
    window.epochs.lock_all = false;
    window.epochs.locks = 0;
    co_return failed.status();
}

// Held for one piece of an operation, so most find it free or wait for a moment.
bool Locks::try_accumulate(ControlBlock& control) const {
    constexpr int kLooks = 64, kYields = 4;
    for (int look = 0; look < kLooks + kYields; ++look) {
        if (control.try_accumulate(rank())) return true;
        if (look >= kLooks) sched_yield();
    }
    return false;
}

Task<Status> Locks::lock_accumulates(Executor& executor, ControlBlock& control) {
    if (try_accumulate(control)) co_return success();
    Status waited = co_await windows.until(executor, [this, &control] {
        if (control.try_accumulate(rank())) return true;
        release_accumulates_of_the_lost(control);
        return false;
    });
    co_return waited;
}

void Locks::release_accumulates_of_the_lost(ControlBlock& control) {
    if (window.lost.ok()) return;
    const int holder = control.accumulates();
    if (holder >= 0 && holder != rank() && !windows.lost(target(holder).peer).ok())
        control.end_accumulate_of(holder);
}

}  // namespace gantry::rma
