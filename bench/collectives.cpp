// SPDX-License-Identifier: BSD-3-Clause
//
// One collective operation of any number of ranks. All ways in turn, sample by sample: each sample
// meets, calls a few times unmeasured, and takes the time of one call on the slowest rank. What arrived
// is checked behind every sample.
//
// BYTES is what one rank has for one other (alltoall), one rank's block (gather, scatter, allgather,
// reduce_scatter), what it has for one neighbour (neighbor_...), the vector, or the message.
//
// With --overlap (computing.hpp) a rank computes, about as long as the call takes, between its start and
// its end.
#include "collectives.hpp"

#include "collective_options.hpp"
#include "collective_way.hpp"
#include "computing.hpp"
#include "driver.hpp"
#include "grid.hpp"
#include "job.hpp"
#include "measure.hpp"
#include "openacc.hpp"
#include "statistics.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <utility>
#include <vector>

namespace gantry::bench {
namespace {

constexpr int kWarmUp = 30;

// The buffers of one size, and a sample of a way.
class Exercise {
  public:
    Exercise(const CollectiveOptions& asked, const Collective& call)
        : validate_(asked.validate),
          call_(call),
          out_(asked.placement, bytes(blocks_out(call)), 1),
          in_(asked.placement, bytes(blocks_in(call)), 1),
          numbers_(std::max(out_.total_bytes(), in_.total_bytes()) / sizeof(Number) + 1) {}
    const Buffer& out() const { return out_; }
    const Buffer& in() const { return in_; }

    // Seconds of one call with so many steps of computing in between, behind `before` unmeasured ones.
    double sample(CollectiveWay& way, int number, int before, long steps = 0) {
        if (number == 0 || validate_) renew(number);
        for (int i = 0; i < before; ++i) {
            way.start();
            way.finish();
        }
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = now_seconds();
        way.start();
        if (steps > 0) compute(steps);
        way.finish();
        const double seconds = now_seconds() - start;
        if (validate_) check(way, number);
        return slowest(seconds);
    }

  private:
    Bytes bytes(int blocks) const {
        return std::max<Bytes>(static_cast<Bytes>(blocks) * call_.count * sizeof(Number), 1);
    }
    void renew(int number) {
        write_outgoing(call_, number, numbers_);
        out_.write(reinterpret_cast<const std::byte*>(numbers_.data()));
        write_incoming(call_, number, numbers_);
        in_.write(reinterpret_cast<const std::byte*>(numbers_.data()));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    void check(const CollectiveWay& way, int number) {
        in_.read(reinterpret_cast<std::byte*>(numbers_.data()));
        if (const auto wrong = wrong_number(call_, number, numbers_))
            give_up(fmt::format("{} of {} bytes by {}: rank {} has {} and not {} at {} of block {}",
                                name(call_.operation), call_.count * sizeof(Number), way.name(),
                                call_.rank, wrong->is, wrong->wanted, wrong->index, wrong->block));
        MPI_Barrier(MPI_COMM_WORLD);
    }

    bool validate_;
    Collective call_;
    Buffer out_, in_;
    std::vector<Number> numbers_;
};

using Ways = std::vector<std::unique_ptr<CollectiveWay>>;

Ways ways(const CollectiveOptions& asked, const Collective& call, const Exercise& exercise,
          std::vector<std::string>& why_not) {
    Ways all;
    all.push_back(library_collective(call, asked.form, exercise.out(), exercise.in()));
    const auto add = [&](std::unique_ptr<CollectiveWay> way, const std::string& why) {
        if (way != nullptr)
            all.push_back(std::move(way));
        else if (std::ranges::find(why_not, why) == why_not.end())
            why_not.push_back(why);
    };
    std::string why;
    if (asked.nccl) add(nccl_collective(call, exercise.out(), exercise.in(), &why), why);
    if (asked.floor) add(stores_collective(call, exercise.out(), exercise.in(), &why), why);
    return all;
}

struct Shown {
    std::string way;
    double microseconds = 0;
    double hidden = 0;  // percent, with --overlap
};

// Medians of the slowest rank's times.
std::vector<Shown> measure_size(const CollectiveOptions& asked, const Collective& call,
                                std::vector<std::string>& why_not) {
    Exercise exercise(asked, call);
    const Ways all = ways(asked, call, exercise, why_not);
    const Bytes bytes = call.count * sizeof(Number);
    const int samples = asked.samples > 0 ? asked.samples : bytes <= kMiB ? 60 : 15;
    std::vector<int> before;
    for (const auto& way : all)
        before.push_back(rounds_before_the_clock(exercise.sample(*way, 0, kWarmUp)));
    const double step = asked.overlap ? seconds_per_step() : 0;
    std::vector<std::vector<double>> times(all.size()), hidden(all.size());
    for (int number = 1; number <= samples; ++number)
        for (std::size_t i = 0; i < all.size(); ++i) {
            const double alone = exercise.sample(*all[i], number, before[i]);
            times[i].push_back(alone);
            if (!asked.overlap) continue;
            const long steps = std::max(1L, static_cast<long>(alone / step));
            const double start = now_seconds();
            compute(steps);
            const double computing = slowest(now_seconds() - start);
            const double total = exercise.sample(*all[i], number, before[i], steps);
            hidden[i].push_back(hidden_percent(alone, computing, total));
        }
    std::vector<Shown> figures;
    for (std::size_t i = 0; i < all.size(); ++i)
        figures.push_back({all[i]->name(), median(times[i]).value * 1e6,
                           asked.overlap ? median(hidden[i]).value : 0});
    return figures;
}

void print(const CollectiveOptions& asked, int ranks, Bytes bytes,
           const std::vector<Shown>& figures, bool& headed) {
    if (asked.json) {
        for (const Shown& figure : figures) {
            fmt::print(
                "{{\"benchmark\": \"{}\", \"placement\": \"{}\", \"ranks\": {}, \"bytes\": {}, "
                "\"way\": \"{}\", \"us\": {:.2f}",
                asked.operation, static_cast<char>(asked.placement), ranks, bytes, figure.way,
                figure.microseconds);
            if (asked.overlap) fmt::print(", \"hidden\": {:.1f}", figure.hidden);
            fmt::print("}}\n");
        }
        return;
    }
    if (!std::exchange(headed, true)) {
        fmt::print("# {} {}, {} ranks, us, median of the slowest rank\n# {:>10}", asked.operation,
                   static_cast<char>(asked.placement), ranks, "bytes");
        for (const Shown& figure : figures) {
            fmt::print(" {:>12}", figure.way);
            if (asked.overlap) fmt::print(" {:>12}", "hidden, %");
        }
        fmt::print("\n");
    }
    fmt::print("{:>12}", bytes);
    for (const Shown& figure : figures) {
        fmt::print(" {:>12.2f}", figure.microseconds);
        if (asked.overlap) fmt::print(" {:>12.1f}", figure.hidden);
    }
    fmt::print("\n");
}

}  // namespace

bool is_collective(const char* word) {
    return operation_named(word).has_value();
}

int collectives(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    CollectiveOptions asked = parse_collective(argc, argv);
    Collective call;
    call.operation = *operation_named(asked.operation);
    MPI_Comm_rank(MPI_COMM_WORLD, &call.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &call.ranks);
    if (asked.placement != Placement::host) {
        std::string why_none;
        const int devices = driver().count(&why_none);
        for (int gpu = 0; asked.gpus.empty() && gpu < devices; ++gpu)
            asked.gpus.push_back(gpu);
        const auto all = static_cast<int>(std::max<std::size_t>(asked.gpus.size(), 1));
        driver().start(asked.gpus.empty() ? 0
                                          : asked.gpus[static_cast<std::size_t>(call.rank % all)]);
    }
    if (is_with_neighbors(call.operation)) call.neighbors = neighbors_in_grid();
    bool headed = false;
    std::vector<std::string> why_not;
    for (const Bytes bytes : asked.sizes) {
        const bool moves = call.operation != Operation::barrier;
        call.count = moves ? std::max<Bytes>(bytes / sizeof(Number), 1) : 0;
        const std::vector<Shown> figures = measure_size(asked, call, why_not);
        if (call.rank == 0) print(asked, call.ranks, bytes, figures, headed);
        std::fflush(stdout);
    }
    if (call.rank == 0)
        for (const std::string& why : why_not)
            fmt::print(stderr, "gantry-bench: left out: {}\n", why);
    openacc().stop();
    driver().stop();
    MPI_Finalize();
    return 0;
}

}  // namespace gantry::bench
