// SPDX-License-Identifier: BSD-3-Clause
//
// The timelines that the ranks of a job have written (base/timeline.hpp), on one clock.
//
// Ranks of one host have the same clock. The clocks of two hosts are first compared by the time of day,
// which may be milliseconds off, and then by the messages between the hosts: none arrives before it was
// sent, and the quickest takes as long one way as the other. So the offset is half the difference of the
// smallest apparent times of both directions.
#pragma once

#include "base/status.hpp"
#include "base/units.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gantry::tool {

struct TimelineEvent {
    std::string kind, what;  // kind: as in Timeline::Kind
    Nanoseconds begin = 0, end = 0;
    int peer = -1, number = 0;
    std::uint32_t sequence = 0;
    Bytes bytes = 0;
};

struct RankTimeline {
    int rank = 0;
    std::string host;
    Nanoseconds to_wall_clock = 0;
    std::uint64_t left_out = 0;
    std::vector<TimelineEvent> events;
};

// What one rank has written; the failure names the line.
Result<RankTimeline> timeline_from(const std::string& text);

// Moves the events of all ranks to the clock of the first rank's host, with its earliest event at 0.
void align_clocks(std::vector<RankTimeline>& ranks);

// The trace format that Perfetto and Chrome open: a process for each rank, in it a track for the calls of
// each thread, for messages and for what moves bytes; arrows from sent to received messages.
std::string to_trace_format(const std::vector<RankTimeline>& ranks);

}  // namespace gantry::tool
