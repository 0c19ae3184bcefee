// SPDX-License-Identifier: BSD-3-Clause
//
// bw: rank 0 starts a window of messages and waits until rank 1, having received all of them,
// answers with an empty message; its clock runs from before the first send until after that answer.
// bibw: both ranks do so at once and no answer is needed, for each has received the other's. Every
// message of a window has memory of its own on both sides.
#include "benchmarks.hpp"
#include "job.hpp"
#include "report.hpp"

#include <algorithm>

namespace gantry::bench {
namespace {

constexpr int kAnswerTag = 9;

double both_ways(Way& way, const Buffer& outgoing, const Buffer& incoming) {
    const double start = now_seconds();
    way.exchange(outgoing, incoming);
    return now_seconds() - start;
}

double megabytes_per_second(double seconds, const Plan& plan) {
    const double bytes = static_cast<double>(plan.bytes) * plan.messages * (plan.both_ways ? 2 : 1);
    return bytes / seconds / 1e6;
}

// 64 messages in flight, fewer where they would need more than 32 MiB a side.
int window_for(const Options& options, Bytes bytes) {
    if (options.window > 0) return options.window;
    return static_cast<int>(std::clamp<Bytes>(32 * kMiB / std::max<Bytes>(bytes, 1), 4, 64));
}

}  // namespace

double answered_window(Way& way, const Buffer& outgoing, const Buffer& incoming) {
    const double start = now_seconds();
    if (side() == 0) {
        way.send(outgoing);
        MPI_Recv(nullptr, 0, MPI_BYTE, peer(), kAnswerTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        way.receive(incoming);
        MPI_Send(nullptr, 0, MPI_BYTE, peer(), kAnswerTag, MPI_COMM_WORLD);
    }
    return now_seconds() - start;
}

void bandwidth(const Options& options) {
    const bool both = options.benchmark == Benchmark::bibw;
    Report report(options, {"MB/s", false, megabytes_per_second},
                  both ? "both ways at once: from before the first MPI_Irecv until rank 0 has sent "
                         "and received its window"
                       : "one way: from before rank 0's first MPI_Isend until rank 1's answer to "
                         "the whole window");
    for (const Bytes bytes : options.sizes) {
        if (bytes == 0) continue;
        Plan plan{.bytes = bytes, .both_ways = both};
        plan.messages = window_for(options, bytes);
        plan.samples = options.iterations > 0 ? options.iterations : bytes <= 64 * kKiB ? 30 : 10;
        report.add(plan, measure(options, plan, both ? both_ways : answered_window));
    }
    report.end();
}

}  // namespace gantry::bench
