// SPDX-License-Identifier: BSD-3-Clause
//
// TwoPhase: one collective read or write in two phases (collective.cpp), as one rank takes part in it. What
// both ways of the exchange have in common: whose runs are where, and windows to and from the file.
#pragma once

#include "base/scope.hpp"
#include "coll/exchange.hpp"
#include "io/depth.hpp"
#include "io/file.hpp"
#include "io/strips.hpp"

#include <limits>
#include <vector>

namespace gantry::io {

inline constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();

// An aggregator has so many: one is exchanged while another one is with the file.
inline constexpr int kWindows = 2;

// A part of the file as an aggregator holds it.
struct Window {
    std::byte* memory = nullptr;
    std::int64_t begin = 0, end = 0;
    std::vector<layout::Layout> layouts;  // of each rank's bytes, counted from `begin`
    std::vector<Interval> intervals;      // everybody's bytes
    Depth busy{1};                        // with the file
    bool failed = false;
};

// What this rank has in an aggregator's part.
struct Share {
    Bytes first = 0, bytes = 0;  // of the data bytes of its access
    StripReader strips;
};

struct TwoPhase {
    TwoPhase(File& of, coll::Team its_team, const Access& its_access,
             const plan::CollectiveIoPlan& its);
    TwoPhase(const TwoPhase&) = delete;
    TwoPhase& operator=(const TwoPhase&) = delete;

    bool writes() const { return access.direction == Direction::write; }
    std::int64_t begin(std::size_t part) const { return plan.part_begin(part); }
    std::int64_t rounds() const {
        return static_cast<std::int64_t>(divide_up(plan.part, plan.window));
    }
    // Of the window of that round, in an aggregator's part; where there is none both are equal.
    Interval window(std::size_t part, std::int64_t round) const;

    File& file;
    const coll::Team team;
    const Access& access;
    const plan::CollectiveIoPlan& plan;
    coll::Run run;            // messages
    std::vector<Share> mine;  // by part
    // As an aggregator: its number, and what the others have for it.
    int aggregator = -1;
    std::vector<StripReader> theirs;
    Window windows[kWindows];
    std::int64_t file_end = kNoEnd;
    plan::IoCarrierPlan carrier;  // of its last window
    bool on_node = false;         // how it went
};

// Every aggregator learns who has which runs of its part.
Task<Status> tell_strips(Executor& executor, TwoPhase& all);

// What the window of that round holds of whom; `layouts`: also as layouts.
enum class Wanted : std::uint8_t { intervals, layouts };
void prepare(TwoPhase& all, Window& window, std::int64_t round, Wanted wanted);

// Between a window and the file.
Task<Status> move_window(Executor& executor, TwoPhase& all, Window& window);

// The two ways of the exchange: by messages (by_messages.cpp), and in windows that all ranks see, since they are of
// one node (on_node.cpp). Of the latter MPI_ERR_UNSUPPORTED_OPERATION: some rank cannot, and nothing has moved.
Task<Status> exchange_by_messages(Executor& executor, TwoPhase& all);
Task<Status> exchange_on_node(Executor& executor, TwoPhase& all);

}  // namespace gantry::io
