// SPDX-License-Identifier: BSD-3-Clause
//
// Chain: ranks counted from the root, each passes on to the next what it hears from the one before,
// in segments: while one goes out the next comes in.
//
//     steps P - 2 + ceil(n / segment); bytes sent by each rank but the last n; memory: none (n where
//     the buffer is not contiguous; page-locked memory where it is a GPU's: n up to 1 MiB, see
//     staged_vector.hpp, else some segments, see relay.hpp)
#include "coll/bcast_algorithms.hpp"
#include "coll/flat.hpp"
#include "coll/relay.hpp"
#include "coll/staged_vector.hpp"
#include "plan/coll_limits.hpp"

#include <algorithm>

namespace gantry::coll {

Task<Status> bcast_chain(Executor& executor, Team team, p2p::Buffer buffer, int root,
                         Bytes segment) {
    Run run(team);
    const int size = team.size();
    const int relative = (team.rank() - root + size) % size;
    const int to = (team.rank() + 1) % size, from = (team.rank() - 1 + size) % size;
    Flat flat;
    Status ready = flat.make(team, buffer);
    GANTRY_CO_TRY(ready);
    if (relative == 0) {
        ready = co_await flat.load(executor, team);
        run.note(std::move(ready));
    }
    const Bytes bytes = flat.bytes().count;
    const Bytes pieces = (bytes + segment - 1) / segment;
    const bool staged = pieces > 1 && (relative == 0 || is_staged_to(team, from)) &&
                        (relative + 1 == size || is_staged_to(team, to));
    using Reads = StagedVector::Reads;
    StagedVector vector(executor, team, staged ? flat.bytes() : transfer::bytes_buffer(nullptr, 0),
                        relative == 0 ? Reads::from_the_start : Reads::nothing);
    const p2p::Buffer whole = vector.on() ? vector.bytes() : flat.bytes();
    const auto end_of = [&](Bytes index) { return std::min((index + 1) * segment, bytes); };
    const auto piece = [&](Bytes index) {
        const Bytes start = index * segment;
        return part_of(whole, start, end_of(index) - start);
    };
    // So many segments are awaited ahead; sends follow what has come.
    constexpr int kAhead = plan::kRelayLimits.chain_ahead, kSends = plan::kRelayLimits.chain_sends;
    const bool passes_on = relative != 0 && relative + 1 != size && !vector.on();
    Relay relay(executor, team, passes_on ? flat.bytes() : transfer::bytes_buffer(nullptr, 0), from,
                to, passes_on ? std::min(segment, bytes) : 0, plan::kRelayLimits.chain_slots());
    const auto comes_to = [&](Bytes index) {
        return relay.on() ? relay.slot(index, piece(index).count) : piece(index);
    };
    InFlight coming(run), going(run);
    for (Bytes i = 0; relative != 0 && i < std::min<Bytes>(kAhead, pieces); ++i)
        coming.receive(comes_to(i), from);
    for (Bytes i = 0; i < pieces; ++i) {
        if (relative != 0) {
            Status came = co_await coming.oldest(executor);
            if (relay.on() && !run.failed()) relay.place(executor, i, piece(i));
            if (relay.on() && i + kAhead < pieces) {
                Status ready_again = co_await relay.ready(executor, i + kAhead);
                run.note(std::move(ready_again));
            }
            if (i + kAhead < pieces) coming.receive(comes_to(i + kAhead), from);
        }
        if (relative == 0) {
            Status read = co_await vector.wait_read(executor, i * segment, end_of(i));
            run.note(std::move(read));
        }
        // What goes on first: the next rank waits for it.
        if (relative + 1 != size) going.send(comes_to(i), to);
        if (relative != 0 && !run.failed()) vector.came(i * segment, end_of(i));
        while (going.count() > kSends) {
            Status went = co_await going.oldest(executor);
        }
    }
    Status went = co_await going.all(executor);
    Status stored_all = co_await vector.all(executor);
    run.note(std::move(stored_all));
    if (relay.on()) {
        Status placed = co_await relay.all(executor);
        run.note(std::move(placed));
    }
    if (relative != 0 && !run.failed()) {
        Status stored = co_await flat.store(executor, team);
        run.note(std::move(stored));
    }
    co_return run.status();
}

}  // namespace gantry::coll
