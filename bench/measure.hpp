// SPDX-License-Identifier: BSD-3-Clause
//
// Measuring one size: all ways in turn, sample by sample, so that whatever the machine does
// meanwhile hits all of them alike.
//
//   for each sample, for each way:   fill buffers | meet | (timed: the exchange) | check buffers
//
// Filling, checking and meeting are outside the time.
#pragma once

#include "contents.hpp"
#include "statistics.hpp"
#include "way.hpp"

#include <functional>
#include <string>
#include <vector>

namespace gantry::bench {

// How one sample moves messages; returns rank 0's seconds (anything on rank 1).
using Exchange = double (*)(Way& way, const Buffer& outgoing, const Buffer& incoming);

struct Figure {
    std::string way;
    Median seconds;   // of one sample
    Bytes block = 0;  // user-pipelined: the best block size found
};

// One way as it is sampled.
struct Candidate {
    std::string name;
    // Seconds of one round, behind so many unmeasured ones; checked.
    std::function<double(int rounds_before)> sample;
    std::function<void()> warm_up;  // where any buffer is on a device
    Bytes block = 0;
};
// So many samples of each, in turn.
std::vector<Figure> sample_in_turn(const Options& options, const std::vector<Candidate>& candidates,
                                   int samples);
// Rounds of so many messages, until mappings of device memory have been opened.
void warm_up_by(int messages, const std::function<void()>& round);

// The library first, then the baselines that were asked for.
std::vector<Figure> measure(const Options& options, const Plan& plan, Exchange exchange);

double now_seconds();
// Unmeasured exchanges before the measured one, where one takes so long. Checking the sample before
// it took long enough for caches, clocks and links to fall asleep, and short exchanges show that
// longest.
int rounds_before_the_clock(double seconds);
inline constexpr int kFewestRoundsBefore = 3;
// Starts the driver on this rank if any buffer needs it.
void prepare_device(Options& options);

}  // namespace gantry::bench
