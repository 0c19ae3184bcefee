// SPDX-License-Identifier: BSD-3-Clause
#include "measure.hpp"

#include "job.hpp"
#include "way_bare.hpp"

#include <algorithm>

namespace gantry::bench {
namespace {

constexpr int kWarmUp = 2;
// Mappings of device memory are opened at break-even (docs/design/mappings.md), some after 2,000
// messages: a run shows what comes after that. Each way gets as many messages, or time.
constexpr int kWarmUpMessages = 2600;
constexpr double kWarmUpSeconds = 1;
constexpr int kWarmUpRounds = 8;  // between two looks at the clock
constexpr int kSearchSamples = 5;
constexpr Bytes kSmallestBlock = 16 * kKiB, kLargestBlock = kMiB;

// One size: its buffers, and how a sample is taken.
class Exercise {
  public:
    Exercise(const Options& options, const Plan& plan, Exchange exchange)
        : exchange_(exchange), contents_(options, plan) {}

    const Contents& contents() const { return contents_; }

    double sample(Way& way, int rounds_before = kFewestRoundsBefore) {
        contents_.renew();
        meet();
        for (int i = 0; i < rounds_before; ++i)
            exchange_(way, contents_.outgoing(), contents_.incoming());
        const double seconds = exchange_(way, contents_.outgoing(), contents_.incoming());
        way.settle();
        contents_.check(way.name());
        return seconds;
    }

    // Unchecked, until rank 0's clock says that it is enough.
    void warm_up(Way& way) {
        contents_.renew();
        meet();
        warm_up_by(contents_.outgoing().messages(),
                   [&] { exchange_(way, contents_.outgoing(), contents_.incoming()); });
        way.settle();
    }

  private:
    Exchange exchange_;
    Contents contents_;
};

// The block size that is fastest here, by trying; rank 0 measures and tells.
Bytes best_block(Exercise& exercise, const Plan& plan, Rows rows) {
    Bytes best = std::max<Bytes>(1, plan.bytes);
    double best_time = 0;
    std::vector<Bytes> blocks = {best};
    for (Bytes block = kSmallestBlock; block <= kLargestBlock && block < plan.bytes; block *= 2)
        blocks.push_back(block);
    if (blocks.size() == 1) return best;
    for (Bytes block : blocks) {
        const auto way = pipelined_way(plan.bytes, plan.messages, block, rows);
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

bool any_device(const Options& options) {
    return std::ranges::any_of(options.placement, &is_device);
}

}  // namespace

double now_seconds() {
    return MPI_Wtime();
}

int rounds_before_the_clock(double seconds) {
    constexpr double kAwake = 5e-3;
    constexpr int kMost = 20;
    MPI_Bcast(&seconds, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return std::clamp(static_cast<int>(std::min(kAwake / std::max(seconds, 1e-9), 1e6)),
                      kFewestRoundsBefore, kMost);
}

void prepare_device(Options& options) {
    const bool any = std::ranges::any_of(
        options.placement, [](Placement placement) { return placement != Placement::host; });
    if (!any && !options.busy) return;
    std::string why_none;
    const int devices = driver().count(&why_none);
    if (options.gpus.empty()) options.gpus = {0, devices > 1 ? 1 : 0};
    if (options.gpus.size() == 1) options.gpus.push_back(options.gpus[0]);
    driver().start(options.gpus[static_cast<std::size_t>(side())]);
}

void warm_up_by(int messages, const std::function<void()>& round) {
    const double begin = now_seconds();
    int more = 1;
    for (int sent = 0; more != 0 && sent < kWarmUpMessages;) {
        for (int i = 0; i < kWarmUpRounds; ++i, sent += messages)
            round();
        more = now_seconds() - begin < kWarmUpSeconds ? 1 : 0;
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
}

std::vector<Figure> sample_in_turn(const Options& options, const std::vector<Candidate>& candidates,
                                   int samples) {
    std::vector<int> rounds;
    for (const Candidate& candidate : candidates) {
        if (any_device(options)) candidate.warm_up();
        double seconds = 0;
        for (int sample = 0; sample < kWarmUp; ++sample)
            seconds = candidate.sample(kFewestRoundsBefore);
        rounds.push_back(rounds_before_the_clock(seconds));
    }
    std::vector<std::vector<double>> times(candidates.size());
    for (int sample = 0; sample < samples; ++sample)
        for (std::size_t i = 0; i < candidates.size(); ++i)
            times[i].push_back(candidates[i].sample(rounds[i]));
    std::vector<Figure> figures;
    for (std::size_t i = 0; i < candidates.size(); ++i)
        figures.push_back({candidates[i].name, median(std::move(times[i])), candidates[i].block});
    return figures;
}

std::vector<Figure> measure(const Options& options, const Plan& plan, Exchange exchange) {
    Exercise exercise(options, plan, exchange);
    std::vector<std::unique_ptr<Way>> ways;
    std::vector<Candidate> candidates;
    auto add = [&](std::unique_ptr<Way> way, Bytes block) {
        Way* const way_there = way.get();
        candidates.push_back(
            {way->name(),
             [&, way_there](int rounds) { return exercise.sample(*way_there, rounds); },
             [&, way_there] { exercise.warm_up(*way_there); }, block});
        ways.push_back(std::move(way));
    };
    if (options.library) add(library_way(), 0);
    if (options.forms) {
        add(started_way(Started::persistent), 0);
        add(started_way(Started::partitioned), 0);
    }
    if (options.staged) add(staged_way(plan.bytes, plan.messages), 0);
    if (options.floors)
        for (const Bare kind : floors_of(options, plan))
            add(bare_way(kind, options, exercise.contents().outgoing(),
                         exercise.contents().incoming()),
                0);
    if (options.pipelined) {
        const Bytes block = best_block(exercise, plan, options.rows);
        add(pipelined_way(plan.bytes, plan.messages, block, options.rows), block);
    }
    return sample_in_turn(options, candidates, plan.samples);
}

}  // namespace gantry::bench
