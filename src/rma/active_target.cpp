// SPDX-License-Identifier: BSD-3-Clause
//
// Fence, and post, start, complete, wait. A rank leaves a fence when all that others sent to it before
// is executed: they say by how many messages, in one reduction. Then all meet, so that nothing of the
// next epoch overtakes what another rank still executes: in memory of the node if all are there. Signals
// of the second kind are counted in memory of the node, too, or are messages; MPI_Win_complete's comes
// behind the operations, in their order.
#include "base/relax.hpp"
#include "coll/barrier.hpp"
#include "base/first_failure.hpp"
#include "coll/reduce_scatter.hpp"
#include "rma/windows.hpp"

#include <algorithm>

namespace gantry::rma {

Task<Status> Synchronisation::await_rendezvous(Executor& executor) {
    std::vector<std::uint64_t> sent;
    for (const auto& each : window.targets)
        sent.push_back(each->sent);
    std::uint64_t expected = 0;
    const layout::Layout number = layout::contiguous_layout(sizeof(std::uint64_t));
    coll::Blocks shares;
    shares.layout = &number;
    for (int i = 0; i < size(); ++i) {
        shares.counts.push_back(1);
        shares.displacements.push_back(i);
    }
    coll::Reducer sum;
    sum.predefined = layout::reduction(layout::Operation::sum, layout::Element::uint64);
    sum.extent = sizeof(std::uint64_t);
    const p2p::Buffer source{sent.data(), sent.size(), &number}, sink{&expected, 1, &number};
    const coll::Team everybody = window.team();
    Status told =
        co_await coll::reduce_scatter(executor, everybody, source, std::move(shares), sink, sum);
    GANTRY_CO_TRY(told);
    Status waited = co_await windows.until(executor, [this, &expected] {
        return window.inbound.served_in_all() >= expected || !window.lost.ok();
    });
    GANTRY_CO_TRY(waited);
    if (window.inbound.served_in_all() < expected) co_return window.lost;
    co_return success();
}

// What is there in a moment needs no turn of progress. Others may need this rank meanwhile.
template <class Condition>
bool Synchronisation::look_a_while(const Condition& condition) {
    constexpr int kLooks = 64;
    for (int look = 0; look < kLooks; ++look) {
        if (condition()) return true;
        if (!window.origin.serve_errand()) relax();
    }
    return false;
}

Task<Status> Synchronisation::meet(Executor& executor) {
    if (window.local_ranks.size() != window.targets.size()) {
        const coll::Team everybody = window.team();
        Status met = co_await coll::barrier(executor, everybody);
        co_return met;
    }
    // Pairs with the acquire below: what was stored before is seen behind the meeting.
    std::atomic<std::uint64_t>& met = target(window.local_ranks.front()).control->met;
    const std::uint64_t all = ++meetings_ * static_cast<std::uint64_t>(size());
    met.fetch_add(1, std::memory_order_acq_rel);
    const auto all_came = [&met, all] { return met.load(std::memory_order_acquire) >= all; };
    if (look_a_while(all_came)) co_return success();
    Status waited = co_await windows.until(executor, [this, &met, all] {
        return met.load(std::memory_order_acquire) >= all || !window.lost.ok();
    });
    GANTRY_CO_TRY(waited);
    co_return all_came() ? success() : window.lost;
}

// Behind what goes there by message: by message. Else in memory of the node.
Status Synchronisation::tell(int of_rank, wire::Kind kind) {
    Target& of = target(of_rank);
    if (of.control == nullptr || of.sent != of.executed || !of.batch.empty())
        return window.signal(of_rank, kind);
    if (!of.gone.ok()) return of.gone;
    std::uint32_t& told = kind == wire::kPost ? window.node_memory.posts(of.local, window.self)
                                              : window.node_memory.completes(of.local, window.self);
    // Pairs with the acquire in posts_of() and completes_of().
    std::atomic_ref(told).fetch_add(1, std::memory_order_release);
    return success();
}

std::uint32_t Synchronisation::posts_of(const Target& of) const {
    if (of.control == nullptr) return of.posts;
    return of.posts + std::atomic_ref(window.node_memory.posts(window.self, of.local))
                          .load(std::memory_order_acquire);
}
std::uint32_t Synchronisation::completes_of(const Target& of) const {
    if (of.control == nullptr) return of.completes;
    return of.completes + std::atomic_ref(window.node_memory.completes(window.self, of.local))
                              .load(std::memory_order_acquire);
}

Task<Status> Synchronisation::fence(Executor& executor, int assertion) {
    if (window.epochs.locks > 0 || window.epochs.lock_all)
        co_return failure(MPI_ERR_RMA_SYNC,
                          "MPI_Win_fence while a target is locked: unlock it first");
    if (window.epochs.started || window.epochs.posted)
        co_return failure(MPI_ERR_RMA_SYNC,
                          "MPI_Win_fence inside an epoch of MPI_Win_start or MPI_Win_post");
    GANTRY_CO_TRY(window.revoked);
    FirstFailure failed;
    if ((assertion & MPI_MODE_NOPRECEDE) == 0) {
        Status quiet = co_await quiet_everywhere(executor);
        failed.note(std::move(quiet));
        if (!window.all_direct() && window.lost.ok()) {
            Status executed = co_await await_rendezvous(executor);
            failed.note(window.outcome(std::move(executed)));
        }
    }
    std::atomic_thread_fence(std::memory_order_seq_cst);
    Status met = window.lost;
    if (met.ok()) met = co_await meet(executor);
    failed.note(window.outcome(std::move(met)));
    window.epochs.fence =
        (assertion & MPI_MODE_NOSUCCEED) != 0 ? Epochs::Fence::none : Epochs::Fence::open;
    co_return failed.status();
}

Task<Status> Synchronisation::post(Executor&, std::vector<int> origins, int assertion) {
    if (window.epochs.posted)
        co_return failure(MPI_ERR_RMA_SYNC,
                          "MPI_Win_post inside an exposure epoch: call MPI_Win_wait first");
    if (window.epochs.fence == Epochs::Fence::used)
        co_return failure(MPI_ERR_RMA_SYNC, "MPI_Win_post inside an epoch of MPI_Win_fence");
    window.epochs.fence = Epochs::Fence::none;
    GANTRY_CO_TRY(window.revoked);
    FirstFailure failed;
    if ((assertion & MPI_MODE_NOCHECK) == 0)
        for (int origin : origins)
            failed.note(tell(origin, wire::kPost));
    window.epochs.posted = true;
    window.epochs.exposure = std::move(origins);
    co_return failed.status();
}

Task<Status> Synchronisation::start(Executor& executor, std::vector<int> accessed, int assertion) {
    if (window.epochs.started)
        co_return failure(MPI_ERR_RMA_SYNC,
                          "MPI_Win_start inside an access epoch: call MPI_Win_complete first");
    if (window.epochs.locks > 0 || window.epochs.lock_all)
        co_return failure(MPI_ERR_RMA_SYNC,
                          "MPI_Win_start while a target is locked: unlock it first");
    if (window.epochs.fence == Epochs::Fence::used)
        co_return failure(MPI_ERR_RMA_SYNC, "MPI_Win_start inside an epoch of MPI_Win_fence");
    window.epochs.fence = Epochs::Fence::none;
    GANTRY_CO_TRY(window.revoked);
    FirstFailure failed;
    for (int of_rank : accessed) {
        Target& of = target(of_rank);
        of.in_started = true;
        if ((assertion & MPI_MODE_NOCHECK) != 0) continue;
        const auto posted = [this, &of] { return posts_of(of) != of.starts; };
        if (!look_a_while(posted)) {
            Status waited = co_await windows.until(
                executor, [this, &of] { return posts_of(of) != of.starts || !of.gone.ok(); });
            failed.note(std::move(waited));
        }
        if (posted())
            ++of.starts;
        else
            failed.note(of.gone);
    }
    window.epochs.started = true;
    window.epochs.access = std::move(accessed);
    co_return failed.status();
}

Task<Status> Synchronisation::complete(Executor& executor) {
    if (!window.epochs.started)
        co_return failure(MPI_ERR_RMA_SYNC, "MPI_Win_complete without MPI_Win_start before it");
    FirstFailure failed;
    failed.note(window.revoked);
    for (int of_rank : window.epochs.access) {
        Status quiet = co_await until_quiet(executor, of_rank);
        failed.note(std::move(quiet));
        Target& of = target(of_rank);
        if (of.rendezvous > 0) {
            // What is announced does not travel in the order of the messages.
            Status ended = co_await windows.until(
                executor, [&of] { return of.rendezvous == 0 || !of.gone.ok(); });
            failed.note(std::move(ended));
        }
        failed.note(tell(of_rank, wire::kComplete));
        failed.note(take_failure(target(of_rank)));
        target(of_rank).in_started = false;
    }
    window.epochs.started = false;
    window.epochs.access.clear();
    co_return failed.status();
}

bool Synchronisation::all_completed() const {
    return std::all_of(window.epochs.exposure.begin(), window.epochs.exposure.end(),
                       [this](int origin) {
                           const Target& of = target(origin);
                           return completes_of(of) != of.awaited;
                       });
}

Status Synchronisation::end_exposure() {
    Status status = window.revoked;
    for (int origin : window.epochs.exposure) {
        Target& of = target(origin);
        if (completes_of(of) != of.awaited)
            ++of.awaited;
        else if (status.ok())
            status = of.gone;
    }
    window.epochs.posted = false;
    window.epochs.exposure.clear();
    return status;
}

Task<Status> Synchronisation::wait(Executor& executor) {
    if (!window.epochs.posted)
        co_return failure(MPI_ERR_RMA_SYNC, "MPI_Win_wait without MPI_Win_post before it");
    if (!look_a_while([this] { return all_completed(); })) {
        Status waited = co_await windows.until(
            executor, [this] { return all_completed() || exposed_to_lost(); });
        GANTRY_CO_TRY(waited);
    }
    co_return end_exposure();
}

bool Synchronisation::exposed_to_lost() {
    if (window.lost.ok()) return false;
    return std::all_of(window.epochs.exposure.begin(), window.epochs.exposure.end(),
                       [this](int origin) {
                           const Target& of = target(origin);
                           return completes_of(of) != of.awaited || !of.gone.ok();
                       });
}

Result<bool> Synchronisation::test() {
    if (!window.epochs.posted)
        return failure(MPI_ERR_RMA_SYNC, "MPI_Win_test without MPI_Win_post before it");
    if (!all_completed() && !exposed_to_lost()) return false;
    GANTRY_TRY(end_exposure());
    return true;
}

}  // namespace gantry::rma
