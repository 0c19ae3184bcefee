// SPDX-License-Identifier: BSD-3-Clause
//
// latency: half a round trip. Rank 0's clock runs from before its first send until after its last
// receive; small messages go round several times per sample, each with a place and a content of its
// own.
#include "benchmarks.hpp"
#include "job.hpp"
#include "report.hpp"

namespace gantry::bench {
namespace {

double ping_pong(Way& way, const Buffer& outgoing, const Buffer& incoming) {
    const double start = now_seconds();
    for (int i = 0; i < outgoing.messages(); ++i) {
        if (side() == 0) {
            way.send_one(outgoing, i);
            way.receive_one(incoming, i);
        } else {
            way.receive_one(incoming, i);
            way.send_one(outgoing, i);
        }
    }
    return now_seconds() - start;
}

double microseconds_one_way(double seconds, const Plan& plan) {
    return seconds * 1e6 / (2 * plan.messages);
}

}  // namespace

void latency(const Options& options) {
    Report report(options, {"us", true, microseconds_one_way},
                  "half a round trip: from before rank 0's MPI_Send until after its MPI_Recv");
    for (const Bytes bytes : options.sizes) {
        Plan plan{.bytes = bytes, .both_ways = true};
        plan.messages = bytes <= 8 * kKiB ? 16 : 1;
        plan.samples = options.iterations > 0 ? options.iterations
                       : bytes <= 8 * kKiB    ? 50
                       : bytes <= kMiB        ? 40
                                              : 20;
        report.add(plan, measure(options, plan, ping_pong));
    }
    report.end();
}

}  // namespace gantry::bench
