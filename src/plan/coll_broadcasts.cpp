// SPDX-License-Identifier: BSD-3-Clause
//
// The algorithms of broadcasts by messages, with their expected times, and the chain, which scans take, too.
//
// Between nodes whose network does not reach device memory a vector may have to be copied out of a GPU and
// into others. Up to StagedVectorLimits.longest that is done piece by piece beside the messages
// (coll/staged_vector.hpp); of longer ones each message is copied by itself, but along a chain
// (coll/relay.hpp).
#include "plan/coll_limits.hpp"
#include "plan/coll_model.hpp"

#include <algorithm>

namespace gantry::plan {
namespace {

constexpr StagedVectorLimits kStaged = kStagedVectorLimits;

// Pieces in which a long vector goes along a chain.
constexpr Bytes kSmallestSegment = 8 * kKiB, kLargestSegment = kMiB;

// A piece that waits in a slot is known to be there when the card has said so: so many ways more.
constexpr double kWordOfCard = 1.5;
// A copy right behind others, of what one takes alone.
constexpr double kFurtherCopy = 0.5;

bool is_copied_by_message(const CollAsk& ask) {
    return ask.may_be_staged() && ask.bytes > kStaged.longest;
}

// What copies add to a message that is copied by itself, in pieces.
double copies_of_message(const CollAsk& ask, Bytes each) {
    const Bytes piece = std::min(each, kStaged.stage);
    return ask.may_be_staged() ? ask.staging(piece, piece) : 0;
}

// In device memory a rank tells all its children at once, and they share its link.
double tree(const CollAsk& ask) {
    if (ask.on_device() && ask.question.shape.nodes <= 1) {
        double time = 0;
        for (int children = 1; children <= ask.rounds; ++children)
            time += ask.from_device(ask.bytes, children);
        return time;
    }
    return sum_of_rounds(ask.ranks, [&](int distance) {
        return ask.one_way(ask.bytes, distance) + copies_of_message(ask, ask.bytes);
    });
}

// Shares down a tree: half of the vector first. A rank sends all of its children theirs at once; where they
// are copied in pieces, these take turns on the wire, and the longest message ends last.
double scatter(const CollAsk& ask) {
    const bool in_turns = is_copied_by_message(ask);
    double time = 0;
    Bytes part = ask.bytes;
    for (int distance = ask.rounds > 0 ? 1 << (ask.rounds - 1) : 0; distance >= 1; distance /= 2) {
        part = whole(part, 2);
        time += ask.one_way(in_turns ? 2 * part : part, distance);
        if (in_turns) time += copies_of_message(ask, part);
    }
    return time;
}

// A power of two of ranks double what they have, others send their shares around a ring.
double all_shares(const CollAsk& ask) {
    const bool copied = is_copied_by_message(ask);
    if (!ask.power_of_two())
        return (ask.ranks - 1) *
               (ask.shift(ask.share(), 1) + (copied ? copies_of_message(ask, ask.share()) : 0));
    double time = 0;
    Bytes part = ask.bytes;
    for (int distance = ask.ranks / 2; distance >= 1; distance /= 2) {
        part = whole(part, 2);
        time += ask.swap(part, distance) + (copied ? copies_of_message(ask, part) : 0);
    }
    return time;
}

CollCandidate scatter_allgather(const CollAsk& ask) {
    CollCandidate way{.algorithm = Algorithm::scatter_allgather,
                      .time = scatter(ask) + all_shares(ask),
                      .why = "long: every rank passes on a share"};
    // The first message is half of the vector, and so is the last one, of doubling.
    if (ask.may_be_staged() && !is_copied_by_message(ask))
        way.time += ask.staging(ask.bytes / 2, ask.power_of_two() ? ask.bytes / 2 : ask.share());
    if (ask.bytes < static_cast<Bytes>(ask.ranks)) way.impossible = "fewer bytes than ranks";
    return way;
}

}  // namespace

CollCandidate chain(const CollAsk& ask, int hops, bool combining) {
    CollCandidate best{.algorithm = Algorithm::chain,
                       .why = "long: pieces follow each other from rank to rank",
                       .rank_order = true};
    const bool may_be_of_devices = ask.question.shape.nodes > 1 && ask.tuning.devices;
    // Short pieces are worth less than what a GPU or its network needs for each.
    const Bytes smallest =
        may_be_of_devices && ask.bytes > kStaged.longest ? kStaged.stage : kSmallestSegment;
    for (Bytes segment = smallest; segment <= kLargestSegment; segment *= 2) {
        if (ask.tuning.segment != 0 && segment != smallest) break;
        const Bytes piece = ask.tuning.segment != 0 ? ask.tuning.segment : segment;
        const Bytes part = std::min(piece, ask.bytes);
        const auto pieces = static_cast<double>(ask.bytes > 0 ? whole(ask.bytes, piece) : 1);
        double hop = ask.shift(part, 1), further = ask.further_shift(part), copies = 0;
        if (combining) {
            hop += ask.combine(part);
            further += ask.combine(part);
        } else if (is_copied_by_message(ask)) {
            hop += kWordOfCard * static_cast<double>(ask.facts.between.latency);
            further = std::max(further, kFurtherCopy * static_cast<double>(ask.facts.gpu.out) +
                                            ask.copied_to_host(part));
            copies = copies_of_message(ask, part);
        } else if (ask.may_be_staged()) {
            // The first piece out of the first GPU, and the last ones into the last one.
            copies = ask.staging(std::min(ask.bytes, kStaged.first_stage),
                                 std::min(ask.bytes, kStaged.stage));
        }
        const double time = hops * hop + (pieces - 1) * further + copies;
        if (best.segment == 0 || time < best.time) best.time = time, best.segment = piece;
    }
    return best;
}

void add_broadcasts(const CollAsk& ask, CollCandidates& list) {
    list.add({.algorithm = Algorithm::binomial, .time = tree(ask), .why = "the fewest steps"});
    list.add(scatter_allgather(ask));
    list.add(chain(ask, ask.ranks - 1, false));
}

}  // namespace gantry::plan
