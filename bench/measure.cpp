// SPDX-License-Identifier: BSD-3-Clause
#include "measure.hpp"

#include "job.hpp"
#include "pattern.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::bench {
namespace {

constexpr int kWarmUp = 2;
constexpr int kRoundsBeforeTheClock = 3;
constexpr int kSearchSamples = 5;
constexpr Bytes kSmallestBlock = 16 * kKiB, kLargestBlock = kMiB;

// The buffers of one size and what is in them.
class Exercise {
  public:
    Exercise(const Options& options, const Plan& plan, Exchange exchange)
        : options_(options),
          plan_(plan),
          exchange_(exchange),
          outgoing_(options.placement[rank()], plan.bytes, plan.messages),
          incoming_(options.placement[rank()], plan.bytes, plan.messages),
          scratch_(outgoing_.total_bytes(), true) {}

    double sample(Way& way) {
        ++sample_;
        if (options_.validate) fill_outgoing();
        meet();
        // Checking the last sample took long enough for caches, clocks and links to fall asleep.
        for (int i = 0; i < kRoundsBeforeTheClock; ++i)
            exchange_(way, outgoing_, incoming_);
        const double seconds = exchange_(way, outgoing_, incoming_);
        if (options_.validate) check_incoming(way);
        return seconds;
    }

  private:
    bool sends() const { return first() || plan_.both_ways; }
    bool receives() const { return !first() || plan_.both_ways; }

    void fill_outgoing() {
        if (!sends()) return;
        for (int i = 0; i < plan_.messages; ++i)
            fill(place(i), {plan_.bytes, sample_, i, rank()});
        outgoing_.write(scratch_.data());
    }
    void check_incoming(Way& way) {
        if (!receives()) return;
        incoming_.read(scratch_.data());
        for (int i = 0; i < plan_.messages; ++i)
            if (auto wrong = mistake(place(i), {plan_.bytes, sample_, i, peer()}))
                give_up(
                    fmt::format("wrong data in message {} of sample {} from rank {} ({}, {} "
                                "bytes): {}\n  to see it again: {}",
                                i, sample_, peer(), way.name(), plan_.bytes, *wrong,
                                command_for(options_, plan_.bytes)));
    }
    std::byte* place(int message) const {
        return scratch_.data() + outgoing_.stride() * static_cast<Bytes>(message);
    }

    const Options& options_;
    const Plan& plan_;
    Exchange exchange_;
    Buffer outgoing_, incoming_;
    HostMemory scratch_;
    std::uint64_t sample_ = 0;
};

// The block size that is fastest here, by trying; rank 0 measures and tells.
Bytes best_block(Exercise& exercise, const Plan& plan) {
    Bytes best = std::max<Bytes>(1, plan.bytes);
    double best_time = 0;
    std::vector<Bytes> blocks = {best};
    for (Bytes block = kSmallestBlock; block <= kLargestBlock && block < plan.bytes; block *= 2)
        blocks.push_back(block);
    if (blocks.size() == 1) return best;
    for (Bytes block : blocks) {
        const auto way = pipelined_way(plan.bytes, plan.messages, block);
        exercise.sample(*way);
        std::vector<double> times;
        for (int i = 0; i < kSearchSamples; ++i)
            times.push_back(exercise.sample(*way));
        const double time = median(times).value;
        if (best_time == 0 || time < best_time) {
            best_time = time;
            best = block;
        }
    }
    MPI_Bcast(&best, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    return best;
}

}  // namespace

double now_seconds() {
    return MPI_Wtime();
}

void prepare_device(Options& options) {
    const bool any = std::ranges::any_of(
        options.placement, [](Placement placement) { return placement != Placement::host; });
    if (!any) return;
    std::string why_none;
    const int devices = driver().count(&why_none);
    if (options.gpus.empty()) options.gpus = {0, devices > 1 ? 1 : 0};
    if (options.gpus.size() == 1) options.gpus.push_back(options.gpus[0]);
    driver().start(options.gpus[static_cast<std::size_t>(rank())]);
}

std::vector<Figure> measure(const Options& options, const Plan& plan, Exchange exchange) {
    Exercise exercise(options, plan, exchange);
    std::vector<std::unique_ptr<Way>> ways;
    std::vector<Figure> figures;
    auto add = [&](std::unique_ptr<Way> way, Bytes block) {
        figures.push_back({way->name(), {}, block});
        ways.push_back(std::move(way));
    };
    if (options.library) add(library_way(), 0);
    if (options.staged) add(staged_way(plan.bytes, plan.messages), 0);
    if (options.pipelined) {
        const Bytes block = best_block(exercise, plan);
        add(pipelined_way(plan.bytes, plan.messages, block), block);
    }

    std::vector<std::vector<double>> times(ways.size());
    for (int sample = -kWarmUp; sample < plan.samples; ++sample)
        for (std::size_t i = 0; i < ways.size(); ++i) {
            const double seconds = exercise.sample(*ways[i]);
            if (sample >= 0) times[i].push_back(seconds);
        }
    for (std::size_t i = 0; i < ways.size(); ++i)
        figures[i].seconds = median(std::move(times[i]));
    return figures;
}

}  // namespace gantry::bench
