// SPDX-License-Identifier: BSD-3-Clause
//
// Which calls the program may make now (MPI 5.0 section 12.5). What the standard forbids but no rank
// would notice is let pass.
#include "rma/windows.hpp"

namespace gantry::rma {

Status Synchronisation::check_access(Target& target) {
    if (target.lock != Lock::none || target.in_started) return success();
    if (window.epochs.fence != Epochs::Fence::none) {
        window.epochs.fence = Epochs::Fence::used;
        return success();
    }
    return failure(MPI_ERR_RMA_SYNC,
                   "no access epoch of this window includes the target: call MPI_Win_fence, "
                   "MPI_Win_start, MPI_Win_lock or MPI_Win_lock_all first");
}

Status Synchronisation::check_passive(int of_rank, const char* function) {
    if (of_rank < 0 ? window.epochs.locks > 0 : target(of_rank).lock != Lock::none)
        return success();
    return failure(MPI_ERR_RMA_SYNC,
                   "{} needs a passive target epoch{}: call MPI_Win_lock or MPI_Win_lock_all first",
                   function, of_rank < 0 ? "" : " at that rank");
}

Status Synchronisation::check_may_lock(const char* function) {
    if (window.epochs.fence == Epochs::Fence::used)
        return failure(MPI_ERR_RMA_SYNC,
                       "{} inside an epoch of MPI_Win_fence that has operations: end it with "
                       "another MPI_Win_fence first",
                       function);
    if (window.epochs.started)
        return failure(MPI_ERR_RMA_SYNC,
                       "{} inside an epoch of MPI_Win_start: call MPI_Win_complete first",
                       function);
    window.epochs.fence = Epochs::Fence::none;
    return success();
}

}  // namespace gantry::rma
