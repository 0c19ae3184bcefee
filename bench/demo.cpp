// SPDX-License-Identifier: BSD-3-Clause
//
// demo: what the library is for, on one page. 4 MiB from one process's device memory to the
// other's, every byte checked, beside what a programmer would write without such a library.
#include "benchmarks.hpp"
#include "job.hpp"
#include "measure.hpp"
#include "report.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace gantry::bench {
namespace {

constexpr int kSamples = 20;

double ping_pong(Way& way, const Buffer& outgoing, const Buffer& incoming) {
    const double start = now_seconds();
    if (first()) way.send_one(outgoing, 0);
    way.receive_one(incoming, 0);
    if (!first()) way.send_one(outgoing, 0);
    return now_seconds() - start;
}

std::string label(const Figure& figure) {
    if (figure.way == "staged") return "by hand: copy, send, receive, copy";
    if (figure.way == "user-pipelined")
        return fmt::format("by hand: blocks of {} KiB, overlapped", figure.block / kKiB);
    return fmt::format("{}: MPI_Send(device pointer)", figure.way);
}

}  // namespace

void demo(const Options& options) {
    const std::string placement = placement_text(options);
    const Plan plan{
        .bytes = options.sizes.back(), .messages = 1, .samples = kSamples, .both_ways = true};
    const std::vector<Figure> figures = measure(options, plan, ping_pong);
    if (!first()) return;
    fmt::print("\n4 MiB from device memory to device memory, between two processes\n\n");
    fmt::print("  library   {}\n  devices   {}\n\n", library_text(), placement);
    fmt::print("  {:<42}{:>12}{:>12}{:>12}\n", "", "one way", "", "");
    const double ours = figures[0].seconds.value;
    for (const Figure& figure : figures) {
        const double one_way = figure.seconds.value / 2;
        fmt::print(
            "  {:<42}{:>9.0f} us{:>7.2f} GB/s{:>12}\n", label(figure), one_way * 1e6,
            static_cast<double>(plan.bytes) / one_way / 1e9,
            &figure == &figures[0] ? "" : fmt::format("{:.2f}x", figure.seconds.value / ours));
    }
    fmt::print("\n  verified  every byte of {} messages each way (medians of {} round trips)\n",
               kSamples * static_cast<int>(figures.size()), kSamples);
    std::fflush(stdout);
}

}  // namespace gantry::bench
