// SPDX-License-Identifier: BSD-3-Clause
//
// mr: messages a second, in the manner of osu_mbw_mr. In every pair the first rank starts a window
// of messages and waits until the second, having received all of them, answers; all pairs at once.
// The time of a sample is that of the slowest pair.
#include "benchmarks.hpp"
#include "job.hpp"
#include "report.hpp"

#include <algorithm>

namespace gantry::bench {
namespace {

constexpr int kWindow = 64;

double all_pairs(Way& way, const Buffer& outgoing, const Buffer& incoming) {
    const double seconds = answered_window(way, outgoing, incoming);
    return pairs() > 1 ? slowest(seconds) : seconds;
}

double messages_per_second(double seconds, const Plan& plan) {
    return plan.messages * static_cast<double>(pairs()) / seconds;
}

}  // namespace

void message_rate(const Options& options) {
    Report report(options, {"messages/s", false, messages_per_second},
                  "all pairs at once: from before a first MPI_Isend until the answer to the whole "
                  "window, of the slowest pair");
    for (const Bytes bytes : options.sizes) {
        if (bytes == 0) continue;
        Plan plan{.bytes = bytes};
        plan.messages = options.window > 0 ? options.window : kWindow;
        plan.samples = options.iterations > 0 ? options.iterations : bytes <= 64 * kKiB ? 30 : 10;
        report.add(plan, measure(options, plan, all_pairs));
    }
    report.end();
}

}  // namespace gantry::bench
