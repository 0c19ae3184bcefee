// SPDX-License-Identifier: BSD-3-Clause
//
// Epochs (MPI 5.0 section 12.5): arguments judged, then the window's tasks.
#include "mpi/bodies.hpp"
#include "mpi/comm/group.hpp"
#include "mpi/engine/pending.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/rma/win.hpp"
#include "rma/windows.hpp"

#include <algorithm>
#include <atomic>

namespace gantry::mpi {
namespace {

Status check_assertion(int assertion, int allowed, const char* function) {
    if ((assertion & ~allowed) == 0) return success();
    return failure(MPI_ERR_ASSERT, "argument assert is {:#x}; {} knows nothing of {:#x}", assertion,
                   function, assertion & ~allowed);
}

Status check_rank(const Win& win, int rank) {
    if (rank >= 0 && rank < win.ranks) return success();
    return failure(MPI_ERR_RANK, "argument rank is {}; it must be a rank of the window's {}", rank,
                   win.ranks);
}

// A rank that looks at its own part of a window again and again never waits; others need it all the
// same.
Pending pending(Win& win, Task<Status> task) {
    Pending made(*win.engine, std::move(task));
    if (made.ended()) turn_in_passing(*win.engine);
    return made;
}

// The ranks of the window that a group names.
Result<std::vector<int>> ranks_of(const Win& win, const Group& group) {
    const std::vector<int>& peers = win.window->group.peers;
    std::vector<int> ranks;
    for (int peer : group.peers) {
        const auto found = std::find(peers.begin(), peers.end(), peer);
        if (found == peers.end())
            return failure(MPI_ERR_GROUP,
                           "the group names process {} of the job, which is not in the window's",
                           peer);
        ranks.push_back(static_cast<int>(found - peers.begin()));
    }
    return ranks;
}

rma::Lock lock_of(int lock_type, int assertion) {
    if ((assertion & MPI_MODE_NOCHECK) != 0) return rma::Lock::unchecked;
    return lock_type == MPI_LOCK_EXCLUSIVE ? rma::Lock::exclusive : rma::Lock::shared;
}

// With an assertion that does not hold.
Task<Status> false_fence(Executor& executor, Win* win, int assertion) {
    Status made = co_await win->window->fence(executor, assertion);
    GANTRY_CO_TRY(made);
    co_return failure(MPI_ERR_ASSERT,
                      "MPI_Win_fence with MPI_MODE_NOPRECEDE behind operations of this rank");
}

}  // namespace

Pending win_fence(int assert, Win& win) {
    GANTRY_TRY(check_assertion(
        assert, MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED,
        "MPI_Win_fence"));
    // The others are in the fence: it is made, and then fails.
    const bool is_false = win.checked && (assert& MPI_MODE_NOPRECEDE) != 0 &&
                          win.window->epochs.fence == rma::Epochs::Fence::used;
    if (is_false)
        return pending(win,
                       false_fence(win.engine->executor(), &win, assert & ~MPI_MODE_NOPRECEDE));
    return pending(win, win.window->fence(win.engine->executor(), assert));
}

Pending win_post(Group& group, int assert, Win& win) {
    GANTRY_TRY(check_assertion(assert, MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT,
                               "MPI_Win_post"));
    Result<std::vector<int>> ranks = ranks_of(win, group);
    if (!ranks.ok()) return std::move(ranks).status();
    return pending(win, win.window->post(win.engine->executor(), std::move(*ranks), assert));
}

Pending win_start(Group& group, int assert, Win& win) {
    GANTRY_TRY(check_assertion(assert, MPI_MODE_NOCHECK, "MPI_Win_start"));
    Result<std::vector<int>> ranks = ranks_of(win, group);
    if (!ranks.ok()) return std::move(ranks).status();
    return pending(win, win.window->start(win.engine->executor(), std::move(*ranks), assert));
}

Pending win_complete(Win& win) {
    return pending(win, win.window->complete(win.engine->executor()));
}

Pending win_wait(Win& win) {
    return pending(win, win.window->wait(win.engine->executor()));
}

Status win_test(Win& win, int* flag) {
    *flag = 0;
    turn(*win.engine);
    Result<bool> ended = win.window->test();
    GANTRY_TRY(ended.status());
    *flag = *ended ? 1 : 0;
    return success();
}

Pending win_lock(int lock_type, int rank, int assert, Win& win) {
    GANTRY_TRY(check_assertion(assert, MPI_MODE_NOCHECK, "MPI_Win_lock"));
    if (rank == MPI_PROC_NULL) return success();
    GANTRY_TRY(check_rank(win, rank));
    return pending(win, win.window->lock(win.engine->executor(), rank, lock_of(lock_type, assert)));
}

Pending win_unlock(int rank, Win& win) {
    if (rank == MPI_PROC_NULL) return success();
    GANTRY_TRY(check_rank(win, rank));
    return pending(win, win.window->unlock(win.engine->executor(), rank));
}

Pending win_lock_all(int assert, Win& win) {
    GANTRY_TRY(check_assertion(assert, MPI_MODE_NOCHECK, "MPI_Win_lock_all"));
    return pending(win,
                   win.window->lock_all(win.engine->executor(), lock_of(MPI_LOCK_SHARED, assert)));
}

Pending win_unlock_all(Win& win) {
    return pending(win, win.window->unlock_all(win.engine->executor()));
}

Pending win_flush(int rank, Win& win) {
    if (rank == MPI_PROC_NULL) return success();
    GANTRY_TRY(check_rank(win, rank));
    return pending(win, win.window->flush(win.engine->executor(), rank));
}

Pending win_flush_local(int rank, Win& win) {
    if (rank == MPI_PROC_NULL) return success();
    GANTRY_TRY(check_rank(win, rank));
    return pending(win, win.window->flush_local(win.engine->executor(), rank));
}

Pending win_flush_all(Win& win) {
    return pending(win, win.window->flush_all(win.engine->executor()));
}

Pending win_flush_local_all(Win& win) {
    return pending(win, win.window->flush_local_all(win.engine->executor()));
}

// Memory is one for everybody (the unified model): only this processor's order is at stake. A turn of
// progress serves programs that poll a window in a loop of such calls.
Pending win_sync(Win& win) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    turn(*win.engine);
    return success();
}

}  // namespace gantry::mpi
