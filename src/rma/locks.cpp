// SPDX-License-Identifier: BSD-3-Clause
//
// Passive target: the lock words of control blocks (control.hpp). Ranks of the target's node take the
// lock themselves; ranks elsewhere ask, and the target takes it for them in the order of their
// questions.
#include "coll/exchange.hpp"
#include "rma/windows.hpp"

#include <sched.h>

namespace gantry::rma {
namespace {

bool try_lock(ControlBlock& control, Lock kind, int world_rank) {
    return kind == Lock::exclusive ? control.try_lock_exclusive(world_rank)
                                   : control.try_lock_shared();
}

void unlock_word(ControlBlock& control, Lock kind) {
    if (kind == Lock::exclusive)
        control.unlock_exclusive();
    else
        control.unlock_shared();
}

}  // namespace

bool Window::try_lock_word(Target& of, Lock kind) {
    if (!try_lock(*of.control, kind, windows.context.world_rank)) return false;
    if (kind == Lock::shared) std::atomic_ref(node_memory_.shares(of.local, self_)).store(1);
    return true;
}

// A rank that holds the lock and is lost, by world rank; -1: none.
int Window::lost_holder(const Target& of) {
    if (lost_.ok()) return -1;
    const int holder = of.control->exclusive_holder();
    if (holder >= 0) return windows.lost(holder).ok() ? -1 : holder;
    for (std::size_t i = 0; i < local_ranks_.size(); ++i) {
        const int peer = target(local_ranks_[i]).peer;
        if (std::atomic_ref(node_memory_.shares(of.local, i)).load() != 0 &&
            !windows.lost(peer).ok())
            return peer;
    }
    return -1;
}

Task<Status> Window::acquire(Executor& executor, int of_rank, Lock kind) {
    Target& of = target(of_rank);
    if (!windows.lost(of.peer).ok()) co_return windows.lost(of.peer);
    if (kind == Lock::unchecked) co_return success();
    if (of.control != nullptr) {
        if (try_lock_word(of, kind)) co_return success();
        bool locked = false;
        int gone = -1;
        Status waited = co_await windows.until(executor, [this, &of, kind, &locked, &gone] {
            locked = try_lock_word(of, kind);
            if (!locked) gone = lost_holder(of);
            return locked || gone >= 0 || !windows.lost(of.peer).ok();
        });
        GANTRY_CO_TRY(waited);
        if (locked) co_return success();
        co_return gone >= 0 ? windows.lost(gone) : windows.lost(of.peer);
    }
    of.granted = false;
    Status asked = send_behind_batch(
        of_rank, wire::kLock,
        wire::Lock{{},
                   kind == Lock::exclusive ? wire::LockKind::exclusive : wire::LockKind::shared});
    GANTRY_CO_TRY(asked);
    Status waited = co_await windows.until(
        executor, [this, &of] { return of.granted || !windows.lost(of.peer).ok(); });
    GANTRY_CO_TRY(waited);
    if (!of.granted) co_return windows.lost(of.peer);
    co_return success();
}

Status Window::give_back(int of_rank) {
    Target& of = target(of_rank);
    const Lock kind = std::exchange(of.lock, Lock::none);
    if (kind == Lock::unchecked) return success();
    if (of.control == nullptr) return signal(of_rank, wire::kUnlock);
    if (kind == Lock::shared) std::atomic_ref(node_memory_.shares(of.local, self_)).store(0);
    unlock_word(*of.control, kind);
    return success();
}

int Window::grant_locks() {
    int granted = 0;
    while (!lock_requests_.empty()) {
        const LockRequest next = lock_requests_.front();
        const Lock kind = next.kind == wire::LockKind::exclusive ? Lock::exclusive : Lock::shared;
        Target& of = target(next.from);
        if (!try_lock(*mine().control, kind, of.peer)) break;
        lock_requests_.pop_front();
        of.holds = kind;
        Status told = signal(next.from, wire::kGranted);
        if (!told.ok()) take_lock_from(next.from);
        ++granted;
    }
    return granted;
}

void Window::take_lock_from(int from) {
    const Lock kind = std::exchange(target(from).holds, Lock::none);
    if (kind != Lock::none) unlock_word(*mine().control, kind);
}

Task<Status> Window::lock(Executor& executor, int of_rank, Lock kind) {
    Status legal = check_may_lock("MPI_Win_lock");
    GANTRY_CO_TRY(legal);
    Target& of = target(of_rank);
    if (of.lock != Lock::none || epochs.lock_all)
        co_return failure(MPI_ERR_RMA_SYNC,
                          "MPI_Win_lock: rank {} is locked by this process already", of_rank);
    Status locked = co_await acquire(executor, of_rank, kind);
    GANTRY_CO_TRY(locked);
    of.lock = kind;
    ++epochs.locks;
    co_return success();
}

Task<Status> Window::unlock(Executor& executor, int of_rank) {
    Target& of = target(of_rank);
    if (of.lock == Lock::none || epochs.lock_all)
        co_return failure(MPI_ERR_RMA_SYNC, "MPI_Win_unlock: rank {} is not locked by MPI_Win_lock",
                          of_rank);
    Status ended = co_await complete_at(executor, of_rank);
    Status given = give_back(of_rank);
    --epochs.locks;
    co_return ended.ok() ? given : ended;
}

Task<Status> Window::lock_all(Executor& executor, Lock kind) {
    Status legal = check_may_lock("MPI_Win_lock_all");
    GANTRY_CO_TRY(legal);
    if (epochs.locks > 0 || epochs.lock_all)
        co_return failure(MPI_ERR_RMA_SYNC,
                          "MPI_Win_lock_all: this process holds a lock of this window already");
    coll::FirstFailure failed;
    Scope locks(executor);
    for (int of_rank = 0; of_rank < size(); ++of_rank)
        locks.spawn(acquire(executor, of_rank, kind));
    Status all = co_await locks.join(executor);
    failed.note(std::move(all));
    for (const auto& each : targets_)
        each->lock = kind;
    epochs.lock_all = true;
    epochs.locks = size();
    co_return failed.status();
}

Task<Status> Window::unlock_all(Executor& executor) {
    if (!epochs.lock_all)
        co_return failure(MPI_ERR_RMA_SYNC,
                          "MPI_Win_unlock_all without MPI_Win_lock_all before it");
    coll::FirstFailure failed;
    Status ended = co_await complete_everywhere(executor);
    failed.note(std::move(ended));
    for (int of_rank = 0; of_rank < size(); ++of_rank)
        failed.note(give_back(of_rank));
    epochs.lock_all = false;
    epochs.locks = 0;
    co_return failed.status();
}

// Held for one piece of an operation, so most find it free or wait for a moment.
bool Window::try_accumulate(ControlBlock& control) const {
    constexpr int kLooks = 64, kYields = 4;
    for (int look = 0; look < kLooks + kYields; ++look) {
        if (control.try_accumulate(windows.context.world_rank)) return true;
        if (look >= kLooks) sched_yield();
    }
    return false;
}

Task<Status> Window::lock_accumulates(Executor& executor, ControlBlock& control) {
    if (try_accumulate(control)) co_return success();
    bool locked = false;
    int gone = -1;
    const int me = windows.context.world_rank;
    Status waited = co_await windows.until(executor, [this, &control, me, &locked, &gone] {
        locked = control.try_accumulate(me);
        const int holder = control.accumulates();
        if (!locked && holder >= 0 && holder != me && !windows.lost(holder).ok()) gone = holder;
        return locked || gone >= 0;
    });
    GANTRY_CO_TRY(waited);
    if (!locked) co_return windows.lost(gone);
    co_return success();
}

}  // namespace gantry::rma
