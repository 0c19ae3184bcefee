// SPDX-License-Identifier: BSD-3-Clause
//
// put, get, accumulate, fetch_op, cas: operations of rank 0 on memory of rank 1, or of each on the
// other's. The origin's clock runs from before the first call of a round until after its last: opening
// an epoch where each round has its own, the operations, and the synchronisation that ends them. Both
// ways, and beside copies by hand, which both ranks make, it is the slower rank's.
#include "benchmarks.hpp"
#include "measure.hpp"
#include "one_sided_contents.hpp"
#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::bench {
namespace {

// One size: its buffers, and how a sample is taken.
class Exercise {
  public:
    Exercise(const Options& options, const Plan& plan)
        : options_(options), plan_(plan), contents_(options, plan) {}
    OriginBuffers origin() const { return contents_.origin(); }

    double sample(OneSidedWay& way, int rounds_before) {
        contents_.renew(way);
        meet();
        for (int number = 0; number < rounds_before; ++number)
            way.round(number);
        const bool of_both = plan_.both_ways || options_.staged;
        if (of_both) meet();
        double seconds = way.round(rounds_before);
        if (of_both) seconds = slowest(seconds);
        meet();
        contents_.check(way, rounds_before + 1);
        return seconds;
    }
    void warm_up(OneSidedWay& way) {
        contents_.renew(way);
        meet();
        int number = 0;
        warm_up_by(plan_.messages, [&] { way.round(number++); });
        meet();
    }

  private:
    const Options& options_;
    const Plan& plan_;
    OneSidedContents contents_;
};

std::vector<Figure> measure_one_sided(const Options& options, const Plan& plan) {
    Exercise exercise(options, plan);
    std::vector<std::unique_ptr<OneSidedWay>> ways;
    ways.push_back(library_one_sided(options, plan, exercise.origin()));
    if (options.staged) ways.push_back(staged_one_sided(options, plan, exercise.origin()));
    if (options.floors)
        for (const BareOneSided kind : one_sided_floors(options, plan))
            ways.push_back(bare_one_sided(kind, options, plan, exercise.origin()));
    std::vector<Candidate> candidates;
    for (const auto& each : ways) {
        OneSidedWay& way = *each;
        candidates.push_back(
            {way.name(), [&](int rounds_before) { return exercise.sample(way, rounds_before); },
             [&] { exercise.warm_up(way); }});
    }
    return sample_in_turn(options, candidates, plan.samples);
}

Unit unit_of(Measure measured) {
    switch (measured) {
        case Measure::latency:
            return {"us", true,
                    [](double seconds, const Plan& plan) { return seconds * 1e6 / plan.messages; }};
        case Measure::rate:
            return {"operations/s", false,
                    [](double seconds, const Plan& plan) { return plan.messages / seconds; }};
        default:
            return {"MB/s", false, [](double seconds, const Plan& plan) {
                        return static_cast<double>(plan.bytes) * plan.messages *
                               (plan.both_ways ? 2 : 1) / seconds / 1e6;
                    }};
    }
}

const char* call_of(Benchmark benchmark) {
    switch (benchmark) {
        case Benchmark::put: return "MPI_Put";
        case Benchmark::get: return "MPI_Get";
        case Benchmark::accumulate: return "MPI_Accumulate of doubles";
        case Benchmark::fetch_op: return "MPI_Fetch_and_op";
        default: return "MPI_Compare_and_swap";
    }
}

std::string timed_text(const Options& options) {
    const char* ends = "";
    switch (options.sync) {
        case Sync::flush: ends = "MPI_Win_flush in an epoch of MPI_Win_lock_all"; break;
        case Sync::fence: ends = "MPI_Win_fence on both"; break;
        case Sync::pscw: ends = "MPI_Win_start and _complete, _post and _wait at the target"; break;
        case Sync::lock: ends = "MPI_Win_lock (shared) and _unlock"; break;
    }
    const char* made = "";
    switch (options.window_kind) {
        case WindowKind::allocate: made = "MPI_Win_allocate"; break;
        case WindowKind::create: made = "MPI_Win_create"; break;
        case WindowKind::dynamic: made = "MPI_Win_create_dynamic"; break;
        case WindowKind::shared: made = "MPI_Win_allocate_shared"; break;
    }
    const char* what = "";
    switch (options.measure) {
        case Measure::latency:
            what = options.staged ? "one operation between two fences, the slower rank's"
                                  : "one operation and its synchronisation at the origin";
            break;
        case Measure::bibw:
            what = "a window of operations of each rank and its synchronisation, the slower rank's";
            break;
        default: what = "a window of operations and its synchronisation at the origin";
    }
    return fmt::format("{}, {}, memory of {}: {}", call_of(options.benchmark), ends, made, what);
}

// 64 operations, fewer where they would need more than 32 MiB a side.
int operations_for(const Options& options, Bytes bytes) {
    if (options.window > 0) return options.window;
    if (options.measure == Measure::latency) return bytes <= 8 * kKiB ? 16 : 1;
    return static_cast<int>(std::clamp<Bytes>(32 * kMiB / bytes, 4, 64));
}

}  // namespace

void one_sided(const Options& options) {
    Report report(options, unit_of(options.measure), timed_text(options));
    for (const Bytes bytes : options.sizes) {
        Plan plan{.bytes = bytes, .both_ways = goes_both_ways(options)};
        plan.messages = operations_for(options, bytes);
        plan.samples = options.iterations > 0 ? options.iterations : bytes <= 64 * kKiB ? 40 : 15;
        report.add(plan, measure_one_sided(options, plan));
    }
    report.end();
}

}  // namespace gantry::bench
