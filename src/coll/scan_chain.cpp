// SPDX-License-Identifier: BSD-3-Clause
//
// Chain: each rank gets the reduction of all before it from the rank below, adds its own elements on
// the right and passes that on, in segments that follow each other. The order is ((x0 op x1) op x2) ...
//
//     steps P - 2 + ceil(n / segment); bytes sent per rank n; memory: four segments
#include "coll/scan_algorithms.hpp"

#include <algorithm>

namespace gantry::coll {

Task<Status> scan_chain(Executor& executor, Team team, p2p::Buffer source, p2p::Buffer sink,
                        Reducer reducer, Scan kind, Bytes segment) {
    Run run(team);
    const int above = team.rank() + 1 < team.size() ? team.rank() + 1 : -1;
    const int below = team.rank() - 1;
    const std::uint64_t elements = elements_of_piece(*source.layout, segment);
    const std::uint64_t pieces = (source.count + elements - 1) / elements;
    Image before[2], with_mine[2];
    for (Image* image : {&before[0], &before[1], &with_mine[0], &with_mine[1]}) {
        Status ready =
            image->allocate(team, std::min(elements, source.count), *source.layout, reducer);
        GANTRY_CO_TRY(ready);
    }
    const auto piece_of = [&](const p2p::Buffer& vector, std::uint64_t piece) {
        const std::uint64_t start = piece * elements;
        return part_of(vector, start, std::min(elements, source.count - start));
    };
    InFlight coming(run), going(run);
    if (below >= 0 && pieces > 0) coming.receive(before[0].first(piece_of(source, 0).count), below);
    for (std::uint64_t piece = 0; piece < pieces; ++piece) {
        const p2p::Buffer mine = piece_of(source, piece), result = piece_of(sink, piece);
        const p2p::Buffer sum = with_mine[piece % 2].first(mine.count);
        const p2p::Buffer prefix = before[piece % 2].first(mine.count);
        if (below >= 0 && piece + 1 < pieces)
            coming.receive(before[(piece + 1) % 2].first(piece_of(source, piece + 1).count), below);
        // Its memory was sent from two pieces ago.
        while (going.count() > 1) {
            Status went = co_await going.oldest(executor);
        }
        Status met = co_await copy(executor, team, mine, sum);
        run.note(std::move(met));
        if (below >= 0) {
            met = co_await coming.oldest(executor);
            met = co_await combine(executor, run, reducer, prefix, sum);
        }
        if (above >= 0) going.send(sum, above);
        if (run.failed() || (kind == Scan::exclusive && below < 0)) continue;
        const p2p::Buffer& wanted = kind == Scan::exclusive ? prefix : sum;
        met = co_await copy(executor, team, wanted, result);
        run.note(std::move(met));
    }
    Status went = co_await going.all(executor);
    co_return run.status();
}

}  // namespace gantry::coll
