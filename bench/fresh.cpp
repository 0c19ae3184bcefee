// SPDX-License-Identifier: BSD-3-Clause
//
// fresh: messages to buffers that no message used before. Every buffer is an allocation of its own
// (cuMemAlloc of the message), because what a library opens or registers once is an allocation.
// All are allocated and filled before the clock, checked and freed after it:
//
//   for each buffer:  send from it into the peer's, as fresh as it | wait for an empty answer
//
// The first rank's clock runs from before MPI_Send until after the answer; `--uses` messages go to
// each buffer, each to a place of its own in it, so that every byte of all of them is checked.
// Printed are the median of the first message to a buffer, what 99 % of them stay below, and the
// time of the whole loop. A library that invests in a buffer shows it here: the same job with
// GANTRY_IPC=off stages them all. side_by_side.cpp runs both in turn and prints the medians of the
// rounds' ratios, because two jobs differ by more than what is looked for. Some buffers of a kind go
// before, not timed: they are fresh too and teach nobody anything about the others.
#include "benchmarks.hpp"
#include "job.hpp"
#include "measure.hpp"
#include "pattern.hpp"
#include "report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>

namespace gantry::bench {
namespace {

constexpr int kTag = 7;
constexpr int kWarmUpBuffers = 20;

// One side's buffers: the first rank of a pair sends from its own, the second receives into them.
class FreshBuffers {
  public:
    FreshBuffers(const Options& options, Bytes bytes, int count)
        : options_(options), bytes_(bytes), scratch_(nullptr) {
        for (int i = 0; i < count; ++i)
            buffers_.push_back(
                std::make_unique<Buffer>(options.placement[side()], bytes, options.uses));
        scratch_ = std::make_unique<HostMemory>(buffers_.front()->total_bytes(), true);
    }

    // Contents depend on the buffer and the message's place in it; what is received into, is
    // emptied.
    void prepare() {
        for (std::size_t i = 0; i < buffers_.size(); ++i) {
            std::fill_n(scratch_->data(), buffers_[i]->total_bytes(), std::byte{0});
            for (int use = 0; side() == 0 && use < options_.uses; ++use)
                fill(place(*buffers_[i], use), {bytes_, i, use, rank()});
            buffers_[i]->write(scratch_->data());
        }
    }
    void check() {
        if (!options_.validate || side() == 0) return;
        for (std::size_t i = 0; i < buffers_.size(); ++i) {
            buffers_[i]->read(scratch_->data());
            for (int use = 0; use < options_.uses; ++use)
                if (auto wrong = mistake(place(*buffers_[i], use), {bytes_, i, use, peer()}))
                    give_up(fmt::format(
                        "wrong data in message {} of buffer {} from rank {} ({}, {} bytes): {}\n"
                        "  to see it again: {}",
                        use, i, peer(), library_name(), bytes_, *wrong,
                        command_for(options_, bytes_)));
        }
    }
    // Seconds of each message, on the first rank.
    std::vector<double> exchange() {
        std::vector<double> seconds;
        seconds.reserve(buffers_.size() * static_cast<std::size_t>(options_.uses));
        meet();
        for (const auto& buffer : buffers_)
            for (int use = 0; use < options_.uses; ++use)
                seconds.push_back(one(*buffer, use));
        return seconds;
    }

  private:
    std::byte* place(const Buffer& buffer, int use) const {
        return scratch_->data() + buffer.stride() * static_cast<Bytes>(use);
    }
    double one(const Buffer& buffer, int use) {
        const int bytes = static_cast<int>(bytes_);
        const double start = now_seconds();
        if (side() == 0) {
            MPI_Send(buffer.message(use), bytes, MPI_BYTE, peer(), kTag, MPI_COMM_WORLD);
            MPI_Recv(nullptr, 0, MPI_BYTE, peer(), kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(buffer.message(use), bytes, MPI_BYTE, peer(), kTag, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            MPI_Send(nullptr, 0, MPI_BYTE, peer(), kTag, MPI_COMM_WORLD);
        }
        return now_seconds() - start;
    }
    const Options& options_;
    Bytes bytes_;
    std::vector<std::unique_ptr<Buffer>> buffers_;
    std::unique_ptr<HostMemory> scratch_;
};

struct Row {
    Median first, later;  // seconds of a message
    double most = 0;      // 99 % of the first messages take less
    double all = 0;       // the loop
};

std::vector<double> times_of(const Options& options, Bytes bytes, int count) {
    FreshBuffers buffers(options, bytes, count);
    buffers.prepare();
    const std::vector<double> seconds = buffers.exchange();
    buffers.check();
    meet();  // nobody frees what the other may still use
    return seconds;
}

Row measure_one(const Options& options, Bytes bytes) {
    times_of(options, bytes, std::min(kWarmUpBuffers, options.buffers));
    const std::vector<double> seconds = times_of(options, bytes, options.buffers);
    Row row;
    std::vector<double> firsts, laters;
    for (std::size_t i = 0; i < seconds.size(); ++i) {
        (i % static_cast<std::size_t>(options.uses) == 0 ? firsts : laters).push_back(seconds[i]);
        row.all += seconds[i];
    }
    row.first = median(firsts);
    row.later = median(laters);
    std::ranges::sort(firsts);
    row.most =
        firsts[static_cast<std::size_t>(std::ceil(0.99 * static_cast<double>(firsts.size()))) - 1];
    return row;
}

nlohmann::ordered_json json_of(const Options& options, Bytes bytes, const Row& row) {
    nlohmann::ordered_json way = {{"name", library_name()},       {"value", row.first.value * 1e6},
                                  {"low", row.first.low * 1e6},   {"high", row.first.high * 1e6},
                                  {"samples", row.first.samples}, {"most_us", row.most * 1e6},
                                  {"all_ms", row.all * 1e3}};
    if (options.uses > 1) way["later_us"] = row.later.value * 1e6;
    return {{"bytes", bytes}, {"messages", options.buffers * options.uses}, {"ways", {way}}};
}

}  // namespace

void fresh(const Options& options) {
    Report report(
        options, {"us", true, nullptr},
        fmt::format("first messages to {} buffers, {} to each: from before MPI_Send until "
                    "after an empty answer",
                    options.buffers, options.uses));
    if (first() && !options.json)
        fmt::print("{:<10}{:>14}{:>18}{:>14}{:>14}{:>14}\n", "# Size", "first (us)", "95 %",
                   "99 % below", "later (us)", "all (ms)");
    for (const Bytes bytes : options.sizes) {
        if (bytes == 0) continue;
        const Row row = measure_one(options, bytes);
        if (!first()) continue;
        if (options.json) {
            report.add_row(json_of(options, bytes, row).dump());
            continue;
        }
        fmt::print(
            "{:<10}{:>14.2f}{:>18}{:>14.2f}{:>14}{:>14.3f}\n", bytes, row.first.value * 1e6,
            fmt::format("{:.2f}-{:.2f}", row.first.low * 1e6, row.first.high * 1e6), row.most * 1e6,
            options.uses > 1 ? fmt::format("{:.2f}", row.later.value * 1e6) : "-", row.all * 1e3);
        std::fflush(stdout);
    }
    report.end();
}

}  // namespace gantry::bench
