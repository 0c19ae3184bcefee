// SPDX-License-Identifier: BSD-3-Clause
//
// Scatter, then allgather (van de Geijn): the root deals shares down a binomial tree, each rank of
// which keeps its own and passes on those of the ranks below it; then the shares go around a ring, or
// double where the ranks are a power of two. Ranks count from the root.
//
//     steps ceil(log2 P) + P - 1 (2 log2 P for a power of two); bytes sent by the root about 2n, by
//     any other rank at most 3n/2; memory: none (n where the buffer is not contiguous, or is a GPU's
//     on nodes of their own: staged_vector.hpp)
#include "coll/bcast_algorithms.hpp"
#include "coll/flat.hpp"
#include "coll/shares.hpp"
#include "coll/staged_vector.hpp"

namespace gantry::coll {
namespace {

// Whether messages with all whom this rank sends to and hears from are staged.
bool is_staged_to_all(const Team& team, int root) {
    const int size = team.size(), relative = (team.rank() - root + size) % size;
    const auto staged_to = [&](int other) { return is_staged_to(team, (other + root) % size); };
    if (!staged_to((relative + 1) % size) || !staged_to((relative - 1 + size) % size)) return false;
    for (int bit = 1; bit < size; bit *= 2)
        if ((relative ^ bit) < size && !staged_to(relative ^ bit)) return false;
    return true;
}

Task<Status> deal(Executor& executor, Run& run, StagedVector& vector, p2p::Buffer bytes,
                  Shares shares, int root) {
    const int size = run.size(), relative = (run.rank() - root + size) % size;
    int bit = 1;
    while (bit < size && (relative & bit) == 0)
        bit *= 2;
    // A rank gets the shares of the ranks [relative, relative + bit).
    if (relative != 0) {
        const p2p::Buffer mine = shares.range(bytes, relative, std::min(relative + bit, size));
        if (mine.count > 0) {
            Status got = co_await receive(executor, run, mine, (relative - bit + root) % size);
            if (!run.failed())
                vector.came(shares.start(relative), shares.start(std::min(relative + bit, size)));
        }
    }
    InFlight sends(run);
    for (bit /= 2; bit > 0; bit /= 2) {
        if (relative + bit >= size) continue;
        const int first = relative + bit, end = std::min(relative + 2 * bit, size);
        const p2p::Buffer theirs = shares.range(bytes, first, end);
        Status read = co_await vector.wait_read(executor, shares.start(first), shares.start(end));
        run.note(std::move(read));
        if (theirs.count > 0) sends.send(theirs, (first + root) % size);
    }
    Status dealt = co_await sends.all(executor);
    co_return run.status();
}

}  // namespace

Task<Status> bcast_scatter_allgather(Executor& executor, Team team, p2p::Buffer buffer, int root) {
    Run run(team);
    const int size = team.size(), relative = (team.rank() - root + size) % size;
    Flat flat;
    Status ready = flat.make(team, buffer);
    GANTRY_CO_TRY(ready);
    if (relative == 0) {
        ready = co_await flat.load(executor, team);
        run.note(std::move(ready));
    }
    using Reads = StagedVector::Reads;
    StagedVector vector(
        executor, team,
        is_staged_to_all(team, root) ? flat.bytes() : transfer::bytes_buffer(nullptr, 0),
        relative == 0 ? Reads::from_the_end : Reads::nothing);
    const p2p::Buffer bytes = vector.on() ? vector.bytes() : flat.bytes();
    const Shares shares(bytes.count, size);
    Status dealt = co_await deal(executor, run, vector, bytes, shares, root);
    Status read = co_await vector.wait_read(executor, 0, shares.count());  // its own share, too
    run.note(std::move(read));
    StagedVector* const stores = relative != 0 ? &vector : nullptr;
    Status gathered = co_await gather_shares(executor, run, bytes, shares, root, stores);
    Status stored_all = co_await vector.all(executor);
    run.note(std::move(stored_all));
    if (relative != 0 && !run.failed()) {
        Status stored = co_await flat.store(executor, team);
        run.note(std::move(stored));
    }
    co_return run.status();
}

}  // namespace gantry::coll
