// SPDX-License-Identifier: BSD-3-Clause
//
// What is outstanding. An operation is quiet when it has ended here: its buffers are the program's
// again and what it read is there. Of those by message the target may have some before it; it is asked
// how many it has executed.
#include "base/first_failure.hpp"
#include "rma/windows.hpp"

namespace gantry::rma {

Status Synchronisation::take_failure(Target& target) {
    return std::exchange(target.failure, Status());
}

Task<Status> Synchronisation::until_quiet(Executor& executor, int of_rank) {
    Target& of = target(of_rank);
    Status shipped = window.outbound.ship_batch(of_rank);
    if (!shipped.ok() && of.failure.ok()) of.failure = std::move(shipped);
    if (of.busy == 0) co_return success();
    Status waited = co_await windows.until(executor, [&of] { return of.busy == 0; });
    co_return waited;
}

// Once for all that was sent so far.
Status Synchronisation::ask_for_report(int of_rank) {
    Target& of = target(of_rank);
    if (of.asked == of.sent) return success();
    GANTRY_TRY(window.signal(of_rank, wire::kFlush));
    of.asked = of.sent;
    return success();
}

Task<Status> Synchronisation::until_executed(Executor& executor, int of_rank) {
    Target& of = target(of_rank);
    if (of.rendezvous > 0) {
        Status told =
            co_await windows.until(executor, [&of] { return of.rendezvous == 0 || !of.gone.ok(); });
        GANTRY_CO_TRY(told);
        if (of.rendezvous > 0) co_return of.gone;
    }
    if (of.executed >= of.sent) co_return success();
    Status asked = ask_for_report(of_rank);
    GANTRY_CO_TRY(asked);
    const std::uint64_t all = of.sent;
    Status waited = co_await windows.until(
        executor, [&of, all] { return of.executed >= all || !of.gone.ok(); });
    GANTRY_CO_TRY(waited);
    if (of.executed < all) co_return of.gone;
    co_return success();
}

Task<Status> Synchronisation::flush_local(Executor& executor, int of_rank) {
    Status legal = check_passive(of_rank, "MPI_Win_flush_local");
    GANTRY_CO_TRY(legal);
    GANTRY_CO_TRY(window.revoked);
    Status quiet = co_await until_quiet(executor, of_rank);
    GANTRY_CO_TRY(quiet);
    co_return take_failure(target(of_rank));
}

Task<Status> Synchronisation::complete_at(Executor& executor, int of_rank) {
    Status ended = co_await until_quiet(executor, of_rank);
    if (ended.ok()) ended = co_await until_executed(executor, of_rank);
    Status failed = take_failure(target(of_rank));
    co_return failed.ok() ? ended : failed;
}

Task<Status> Synchronisation::flush(Executor& executor, int of_rank) {
    Status legal = check_passive(of_rank, "MPI_Win_flush");
    GANTRY_CO_TRY(legal);
    GANTRY_CO_TRY(window.revoked);
    Status ended = co_await complete_at(executor, of_rank);
    co_return ended;
}

Task<Status> Synchronisation::complete_everywhere(Executor& executor) {
    FirstFailure failed;
    // All are asked before any is waited for.
    for (int of_rank = 0; of_rank < size(); ++of_rank) {
        const Target& of = target(of_rank);
        failed.note(window.outbound.ship_batch(of_rank));
        // An rendezvous put counts as executed when it has ended.
        if (of.busy == 0 && of.rendezvous == 0 && of.sent > of.executed)
            failed.note(ask_for_report(of_rank));
    }
    for (int of_rank = 0; of_rank < size(); ++of_rank) {
        Target& of = target(of_rank);
        if (of.busy == 0 && of.rendezvous == 0 && of.sent == of.executed && of.failure.ok())
            continue;
        Status ended = co_await complete_at(executor, of_rank);
        failed.note(std::move(ended));
    }
    co_return failed.status();
}

Task<Status> Synchronisation::flush_all(Executor& executor) {
    Status legal = check_passive(-1, "MPI_Win_flush_all");
    GANTRY_CO_TRY(legal);
    GANTRY_CO_TRY(window.revoked);
    Status ended = co_await complete_everywhere(executor);
    co_return ended;
}

Task<Status> Synchronisation::flush_local_all(Executor& executor) {
    Status legal = check_passive(-1, "MPI_Win_flush_local_all");
    GANTRY_CO_TRY(legal);
    GANTRY_CO_TRY(window.revoked);
    Status ended = co_await quiet_everywhere(executor);
    co_return ended;
}

Task<Status> Synchronisation::quiet_everywhere(Executor& executor) {
    FirstFailure failed;
    for (int of_rank = 0; of_rank < size(); ++of_rank) {
        Status quiet = co_await until_quiet(executor, of_rank);
        failed.note(std::move(quiet));
        failed.note(take_failure(target(of_rank)));
    }
    co_return failed.status();
}

}  // namespace gantry::rma
