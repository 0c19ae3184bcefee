// SPDX-License-Identifier: BSD-3-Clause
//
// sendrecv: both ranks send each other one message at once, as programs do that exchange the edges of
// their parts of a grid.
#include "benchmarks.hpp"
#include "job.hpp"
#include "measure.hpp"
#include "report.hpp"

namespace gantry::bench {
namespace {

double exchange(Way& way, const Buffer& outgoing, const Buffer& incoming) {
    const double start = now_seconds();
    way.sendrecv(outgoing, incoming);
    return now_seconds() - start;
}

double microseconds(double seconds, const Plan&) {
    return seconds * 1e6;
}

}  // namespace

void sendrecv(const Options& options) {
    Report report(options, {"us", true, microseconds},
                  "one message each way at once: from before rank 0's MPI_Sendrecv until after it");
    for (const Bytes bytes : options.sizes) {
        Plan plan{.bytes = bytes, .both_ways = true};
        plan.samples = options.iterations > 0 ? options.iterations : bytes <= kMiB ? 50 : 20;
        report.add(plan, measure(options, plan, exchange));
    }
    report.end();
}

}  // namespace gantry::bench
