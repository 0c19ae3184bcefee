// SPDX-License-Identifier: BSD-3-Clause
//
// overlap: how much of a transfer hides behind computing. The first rank posts MPI_Isend, the
// second MPI_Irecv; both compute without any call of MPI, then wait. As the OSU benchmarks of
// nonblocking operations define it (osu_iallreduce and its kin, "Overlap(%)"):
//
//     hidden = 1 - (total - computing) / transfer        between 0 and 1
//
//     transfer    from before the post until after the wait, nothing between them
//     computing   the computation alone; a fixed number of steps that takes about twice as long
//                 as the transfer (`--compute` times as long), so that it takes longer when
//                 somebody else uses its processor
//     total       post, compute, wait
//
// Each is the slower rank's, a median over samples, and all three are taken in turn. Before each
// transfer that is timed some are not (rounds_before_the_clock). Posting and the wait itself are
// never hidden: they are printed.
#include "benchmarks.hpp"
#include "computing.hpp"
#include "job.hpp"
#include "measure.hpp"
#include "report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <vector>

namespace gantry::bench {
namespace {

constexpr int kTag = 3;
constexpr int kWarmUp = 3;

// Times of one sample on this rank, in seconds.
struct Times {
    double post = 0, wait = 0, total = 0;
};

class Overlap {
  public:
    Overlap(const Options& options, const Plan& plan)
        : contents_(options, plan), requests_(static_cast<std::size_t>(plan.messages)) {}

    void set_rounds_before_the_clock(double seconds) {
        rounds_before_the_clock_ = rounds_before_the_clock(seconds);
    }

    Times exchange(long steps) {
        contents_.renew();
        meet();
        for (int i = 0; i < rounds_before_the_clock_; ++i) {
            post();
            wait();
        }
        const double start = now_seconds();
        post();
        const double posted = now_seconds();
        if (steps > 0) compute(steps);
        const double computed = now_seconds();
        wait();
        const double end = now_seconds();
        contents_.check(library_name());
        return {posted - start, end - computed, end - start};
    }

  private:
    void post() {
        const bool sends = contents_.sends();
        const Buffer& buffer = sends ? contents_.outgoing() : contents_.incoming();
        const int bytes = static_cast<int>(buffer.message_bytes());
        for (int i = 0; i < buffer.messages(); ++i) {
            MPI_Request* request = &requests_[static_cast<std::size_t>(i)];
            if (sends)
                MPI_Isend(buffer.message(i), bytes, MPI_BYTE, peer(), kTag, MPI_COMM_WORLD,
                          request);
            else
                MPI_Irecv(buffer.message(i), bytes, MPI_BYTE, peer(), kTag, MPI_COMM_WORLD,
                          request);
        }
    }
    void wait() {
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    }
    Contents contents_;
    std::vector<MPI_Request> requests_;
    int rounds_before_the_clock_ = kFewestRoundsBefore;
};

struct Row {
    Median transfer, computing, total, hidden;  // hidden: percent; else seconds
    double post = 0, wait = 0;
};

Row measure_one(const Options& options, const Plan& plan, double step) {
    Overlap overlap(options, plan);
    std::vector<double> search;
    for (int i = -kWarmUp; i < plan.samples; ++i) {
        const double transfer = slowest(overlap.exchange(0).total);
        if (i < 0) overlap.set_rounds_before_the_clock(transfer);
        if (i >= 0) search.push_back(transfer);
    }
    const auto steps =
        std::max(1L, static_cast<long>(median(search).value * options.compute / step));
    std::vector<double> transfers, computings, totals, hidden, posts, waits;
    for (int i = -kWarmUp; i < plan.samples; ++i) {
        const double transfer = slowest(overlap.exchange(0).total);
        meet();
        const double start = now_seconds();
        compute(steps);
        const double computing = slowest(now_seconds() - start);
        const Times both = overlap.exchange(steps);
        const double total = slowest(both.total), post = slowest(both.post),
                     wait = slowest(both.wait);
        if (i < 0) continue;
        transfers.push_back(transfer);
        computings.push_back(computing);
        totals.push_back(total);
        posts.push_back(post);
        waits.push_back(wait);
    }
    Row row{median(transfers), median(computings), median(totals), {}, 0, 0};
    row.post = median(posts).value;
    row.wait = median(waits).value;
    // The interval of the share follows from that of the total.
    row.hidden = {hidden_percent(row.transfer.value, row.computing.value, row.total.value),
                  hidden_percent(row.transfer.value, row.computing.value, row.total.high),
                  hidden_percent(row.transfer.value, row.computing.value, row.total.low),
                  plan.samples};
    return row;
}

nlohmann::ordered_json json_of(const Plan& plan, const Row& row) {
    return {{"bytes", plan.bytes},
            {"messages", plan.messages},
            {"ways",
             {{{"name", library_name()},
               {"value", row.hidden.value},
               {"low", row.hidden.low},
               {"high", row.hidden.high},
               {"samples", row.hidden.samples},
               {"transfer_us", row.transfer.value * 1e6},
               {"computing_us", row.computing.value * 1e6},
               {"total_us", row.total.value * 1e6},
               {"post_us", row.post * 1e6},
               {"wait_us", row.wait * 1e6}}}}};
}

}  // namespace

void overlap(const Options& options) {
    const std::string timed = fmt::format(
        "share of the transfer hidden behind computing {} times as long: "
        "1 - (total - computing) / transfer, of the slower rank",
        options.compute);
    Report report(options, {"%", false, nullptr}, timed);
    const double step = seconds_per_step();
    if (first() && !options.json)
        fmt::print("{:<10}{:>14}{:>14}{:>14}{:>10}{:>10}{:>12}{:>16}\n", "# Size", "transfer (us)",
                   "computing", "total", "post", "wait", "hidden (%)", "95 %");
    for (const Bytes bytes : options.sizes) {
        if (bytes == 0) continue;
        Plan plan{.bytes = bytes};
        plan.messages = std::max(1, options.window);
        plan.samples = options.iterations > 0 ? options.iterations : bytes <= kMiB ? 50 : 20;
        const Row row = measure_one(options, plan, step);
        if (!first()) continue;
        if (options.json) {
            report.add_row(json_of(plan, row).dump());
            continue;
        }
        fmt::print("{:<10}{:>14.2f}{:>14.2f}{:>14.2f}{:>10.2f}{:>10.2f}{:>12.1f}{:>16}\n", bytes,
                   row.transfer.value * 1e6, row.computing.value * 1e6, row.total.value * 1e6,
                   row.post * 1e6, row.wait * 1e6, row.hidden.value,
                   fmt::format("{:.1f}-{:.1f}", row.hidden.low, row.hidden.high));
        std::fflush(stdout);
    }
    report.end();
}

}  // namespace gantry::bench
