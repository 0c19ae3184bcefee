// SPDX-License-Identifier: BSD-3-Clause
#include "plan/p2p_model.hpp"

#include <algorithm>
#include <cmath>

namespace gantry::plan {
namespace {

// A rate of zero is a way that does not exist; an hour makes any other way better without
// overflowing sums.
constexpr Nanoseconds kNever = 3600 * kSecond;
constexpr Bytes kMostEqualParts = 24;
constexpr Bytes kFewestUnits = 4;  // below, rounding up to whole units makes the last part short

std::span<const Leg> legs_of(const Line& line) {
    return std::span(line.legs).first(static_cast<std::size_t>(line.leg_count));
}

int slowest_leg(const Line& line, Bytes piece) {
    const std::span<const Leg> legs = legs_of(line);
    const auto slowest =
        std::ranges::max_element(legs, {}, [piece](const Leg& leg) { return leg.further(piece); });
    return static_cast<int>(slowest - legs.begin());
}

// From one piece to the next, where all legs work.
Nanoseconds pace_of(const Line& line, Bytes piece) {
    Nanoseconds sum = 0, slowest = 0;
    for (const Leg& leg : legs_of(line)) {
        sum += leg.further(piece);
        slowest = std::max(slowest, leg.further(piece));
    }
    return line.take_turns ? sum : slowest;
}

Pieces with_chunk(const Line& line, Bytes bytes, Bytes chunk) {
    const Bytes pieces = std::max<Bytes>(1, divide_up(bytes, chunk));
    const Bytes first = std::min(bytes, chunk);

    Nanoseconds fill = 0;
    for (const Leg& leg : legs_of(line))
        fill += leg.first(first);
    Pieces result{.chunk = chunk, .slowest_leg = slowest_leg(line, first)};
    Nanoseconds pace = pace_of(line, first);

    // Enough slots that the slowest leg never waits for one: a slot is busy while its piece passes
    // every leg.
    const Bytes fit = bytes <= line.in_flight ? pieces : line.in_flight / chunk;
    const Bytes room = std::clamp<Bytes>(fit, 1, kDeepest);
    // Its credit comes back after another handshake's way.
    Bytes depth = static_cast<Bytes>((fill + line.handshake) / std::max<Nanoseconds>(pace, 1)) + 1;
    // Twice what an even flow needs: pieces and credits come in bursts, and a host copy on the way
    // is not in the facts. A slot that waits costs nothing.
    depth *= 2;
    depth = std::max(depth, static_cast<Bytes>(line.shallowest));
    if (line.fixed_depth > 0) depth = static_cast<Bytes>(line.fixed_depth);
    depth = std::min({depth, room, pieces});
    result.depth = static_cast<int>(depth);
    pace = std::max(pace, fill / result.depth);

    Nanoseconds start = line.handshake;
    if (line.ahead) start = std::max<Nanoseconds>(0, start - line.legs[0].first(first));
    result.expected = start + fill + line.tail;
    if (pieces > 1) {
        const Bytes last = bytes - (pieces - 1) * chunk;
        result.expected +=
            static_cast<Nanoseconds>(pieces - 2) * pace + std::min(pace_of(line, last), pace);
    }
    return result;
}

}  // namespace

Nanoseconds transfer_time(Bytes bytes, double bytes_per_second) {
    if (bytes == 0) return 0;
    if (bytes_per_second <= 0) return kNever;
    const double time = std::ceil(static_cast<double>(bytes) * 1e9 / bytes_per_second);
    return time < static_cast<double>(kNever) ? static_cast<Nanoseconds>(time) : kNever;
}

Nanoseconds Leg::first(Bytes bytes) const {
    return latency + transfer_time(bytes, bytes_per_second);
}
Nanoseconds Leg::further(Bytes bytes) const {
    return per_piece + transfer_time(bytes, bytes_per_second);
}

Pieces best_pieces(const Line& line, Bytes bytes) {
    if (line.fixed_chunk != 0) return with_chunk(line, bytes, line.fixed_chunk);
    Pieces best = with_chunk(line, bytes, line.smallest_chunk);
    for (Bytes chunk = line.smallest_chunk * 2;
         chunk <= line.largest_chunk && chunk / 2 < std::max<Bytes>(bytes, 1); chunk *= 2) {
        Pieces pieces = with_chunk(line, bytes, chunk);
        // On a tie the larger piece: fewer operations for the same time.
        if (pieces.expected <= best.expected) best = pieces;
    }
    // Two engines in a row: the best size is the root of message x price of a piece x rate, and
    // between two powers of two lies up to 2 %.
    for (Bytes parts = 3; line.equal_unit > 0 && parts <= kMostEqualParts; ++parts) {
        const Bytes units = divide_up(divide_up(bytes, parts), line.equal_unit);
        const Bytes chunk = units * line.equal_unit;
        if (units < kFewestUnits) break;
        if (chunk > line.largest_chunk) continue;
        Pieces pieces = with_chunk(line, bytes, chunk);
        if (pieces.expected < best.expected) best = pieces;
    }
    return best;
}

}  // namespace gantry::plan
