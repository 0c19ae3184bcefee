// SPDX-License-Identifier: BSD-3-Clause
//
// A piece is sent and received whole before it is combined, so a rank may combine into what it has
// sent. The next piece is started before.
#include "coll/combine.hpp"

#include "coll/planner.hpp"
#include "coll/workplace.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace gantry::coll {
namespace {

std::uint64_t piece_elements(const Run& run, const p2p::Buffer& vector,
                             const layout::Layout& layout) {
    return elements_of_piece(layout, plan::combined_piece(vector.bytes(), tuning_of(run.team)));
}

// Piece number `index` of a vector; empty behind its end.
p2p::Buffer piece_of(const p2p::Buffer& vector, std::uint64_t index, std::uint64_t elements) {
    const std::uint64_t start = std::min(vector.count, index * elements);
    return part_of(vector, start, std::min(elements, vector.count - start));
}

}  // namespace

Task<Status> combine(Executor& executor, Run& run, Reducer reducer, p2p::Buffer first,
                     p2p::Buffer second) {
    // What is there is not what should be: the program's function is not told of it.
    if (run.failed() || second.count == 0) co_return run.status();
    Status combined = co_await combine(executor, run.team, reducer, first, second);
    run.note(std::move(combined));
    co_return run.status();
}

std::uint64_t elements_of_piece(const layout::Layout& layout, Bytes piece) {
    const auto distance = static_cast<Bytes>(std::abs(layout.extent));
    return std::max<std::uint64_t>(1, piece / std::max<Bytes>({distance, layout.size, 1}));
}

namespace {

// What arrived and what `into` has, in their order, into `into`.
Task<Status> put_together(Executor& executor, Run& run, p2p::Buffer arrived, p2p::Buffer into,
                          Reducer reducer, Mine mine) {
    if (reducer.commutative || mine == Mine::right) {
        Status combined = co_await combine(executor, run, reducer, arrived, into);
        co_return combined;
    }
    Status combined = co_await combine(executor, run, reducer, into, arrived);
    GANTRY_CO_TRY(combined);
    combined = co_await copy(executor, run.team, arrived, into);
    run.note(std::move(combined));
    co_return run.status();
}

}  // namespace

Task<Status> exchange_and_combine(Executor& executor, Run& run, p2p::Buffer outgoing, int to,
                                  p2p::Buffer into, int from, Reducer reducer, Mine mine) {
    // The partner cuts what it sends as this rank cuts what it receives: by what is common to both.
    const std::uint64_t elements = piece_elements(run, into, *into.layout),
                        out_elements = piece_elements(run, outgoing, *into.layout);
    const std::uint64_t in_pieces = (into.count + elements - 1) / elements,
                        out_pieces = (outgoing.count + out_elements - 1) / out_elements;
    Image arrived[2];
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(in_pieces, 2); ++i) {
        Status ready =
            arrived[i].allocate(run.team, std::min(elements, into.count), *into.layout, reducer);
        if (!ready.ok()) run.note(std::move(ready));
        if (run.failed() && arrived[i].address() == nullptr) co_return run.status();
    }
    if (in_pieces == 1 && out_pieces == 1) {
        const p2p::Buffer other = arrived[0].first(into.count);
        Status met = co_await exchange(executor, run, outgoing, to, other, from);
        met = co_await put_together(executor, run, other, into, reducer, mine);
        co_return met;
    }
    InFlight messages(run);
    const auto start = [&](std::uint64_t piece) {
        if (piece < in_pieces)
            messages.receive(arrived[piece % 2].first(piece_of(into, piece, elements).count), from);
        if (piece < out_pieces) messages.send(piece_of(outgoing, piece, out_elements), to);
    };
    const std::uint64_t pieces = std::max(in_pieces, out_pieces);
    start(0);
    for (std::uint64_t piece = 0; piece < pieces; ++piece) {
        const std::size_t of_next =
            (piece + 1 < in_pieces ? 1u : 0u) + (piece + 1 < out_pieces ? 1u : 0u);
        start(piece + 1);
        while (messages.count() > of_next) {
            Status ended = co_await messages.oldest(executor);
        }
        if (piece >= in_pieces) continue;
        const p2p::Buffer sum = piece_of(into, piece, elements);
        Status combined = co_await put_together(executor, run, arrived[piece % 2].first(sum.count),
                                                sum, reducer, mine);
    }
    co_return run.status();
}

Task<Status> exchange_pieces(Executor& executor, Run& run, p2p::Buffer outgoing, int to,
                             p2p::Buffer incoming, int from) {
    const std::uint64_t elements = piece_elements(run, incoming, *incoming.layout),
                        out_elements = piece_elements(run, outgoing, *incoming.layout);
    InFlight messages(run);
    for (std::uint64_t piece = 0;
         piece * elements < incoming.count || piece * out_elements < outgoing.count; ++piece) {
        const p2p::Buffer in = piece_of(incoming, piece, elements),
                          out = piece_of(outgoing, piece, out_elements);
        if (in.count > 0) messages.receive(in, from);
        if (out.count > 0) messages.send(out, to);
    }
    Status met = co_await messages.all(executor);
    co_return met;
}

}  // namespace gantry::coll
