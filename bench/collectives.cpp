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
          contents_(std::max(out_.total_bytes(), in_.total_bytes())) {}
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
        return std::max<Bytes>(static_cast<Bytes>(blocks) * block_bytes(call_), 1);
    }
    void renew(int number) {
        write_outgoing(call_, number, contents_);
        out_.write(contents_.data());
        write_incoming(call_, number, contents_);
        in_.write(contents_.data());
        MPI_Barrier(MPI_COMM_WORLD);
    }
    void check(const CollectiveWay& way, int number) {
        in_.read(contents_.data());
        if (const auto wrong = wrong_number(call_, number, contents_))
            give_up(fmt::format("{} of {} bytes by {}: rank {} has {} and not {} at {} of block {}",
                                name(call_.operation), block_bytes(call_), way.name(), call_.rank,
                                wrong->is, wrong->wanted, wrong->index, wrong->block));
        MPI_Barrier(MPI_COMM_WORLD);
    }

    bool validate_;
    Collective call_;
    Buffer out_, in_;
    std::vector<std::byte> contents_;
};

// What other ways are made for.
bool is_usual(const Collective& call) {
    return call.element == Element::int32 && call.op == Combination::sum;
}

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
    if (asked.staged) all.push_back(staged_collective(call, exercise.out(), exercise.in()));
    if (asked.messages) all.push_back(messages_in_turn(call, exercise.out(), exercise.in()));
    if (!is_usual(call)) {
        if (asked.nccl || asked.floor) add(nullptr, "NCCL and stores by hand are of sums of int");
        return all;
    }
    if (asked.nccl) add(nccl_collective(call, exercise.out(), exercise.in(), &why), why);
    if (asked.floor) add(stores_collective(call, exercise.out(), exercise.in(), &why), why);
    return all;
}

struct Shown {
    std::string way;
    Median seconds;
    double hidden = 0;  // percent, with --overlap
};

// Medians of the slowest rank's times.
std::vector<Shown> measure_size(const CollectiveOptions& asked, const Collective& call,
                                std::vector<std::string>& why_not) {
    Exercise exercise(asked, call);
    const Ways all = ways(asked, call, exercise, why_not);
    const Bytes bytes = block_bytes(call);
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
        figures.push_back(
            {all[i]->name(), median(times[i]), asked.overlap ? median(hidden[i]).value : 0});
    return figures;
}

void print(const CollectiveOptions& asked, int ranks, Bytes bytes,
           const std::vector<Shown>& figures, bool& headed) {
    if (asked.json) {
        for (const Shown& figure : figures) {
            fmt::print(
                "{{\"benchmark\": \"{}\", \"placement\": \"{}\", \"ranks\": {}, \"bytes\": {}, "
                "\"numbers\": \"{}\", \"way\": \"{}\", \"us\": {:.2f}, \"low\": {:.2f}, \"high\": "
                "{:.2f}",
                asked.operation, static_cast<char>(asked.placement), ranks, bytes, asked.numbers,
                figure.way, 1e6 * figure.seconds.value, 1e6 * figure.seconds.low,
                1e6 * figure.seconds.high);
            if (asked.overlap) fmt::print(", \"hidden\": {:.1f}", figure.hidden);
            fmt::print("}}\n");
        }
        return;
    }
    if (!std::exchange(headed, true)) {
        fmt::print("# {} {} ({}), {} ranks, us, median of the slowest rank\n# {:>10}",
                   asked.operation, static_cast<char>(asked.placement), asked.numbers, ranks,
                   "bytes");
        for (const Shown& figure : figures) {
            fmt::print(" {:>12}", figure.way);
            if (asked.overlap) fmt::print(" {:>12}", "hidden, %");
        }
        fmt::print("\n");
    }
    fmt::print("{:>12}", bytes);
    for (const Shown& figure : figures) {
        fmt::print(" {:>12.2f}", 1e6 * figure.seconds.value);
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
    call.element = asked.element;
    call.op = asked.op;
    if (reduces(call.operation) && call.op == Combination::sum &&
        limit_of(call.element, call.ranks) == 0) {
        if (call.rank == 0)
            fmt::print(stderr,
                       "gantry-bench: sums of {} ranks do not fit into this --type: take int\n",
                       call.ranks);
        finish(2);
    }
    if (asked.placement != Placement::host) {
        driver().start_in_turn(std::move(asked.gpus), call.rank);
    }
    if (is_with_neighbors(call.operation)) call.neighbors = neighbors_in_grid();
    bool headed = false;
    std::vector<std::string> why_not;
    for (const Bytes bytes : asked.sizes) {
        const bool moves = call.operation != Operation::barrier;
        call.count = moves ? std::max<Bytes>(bytes / size_of(call.element), 1) : 0;
        const std::vector<Shown> figures = measure_size(asked, call, why_not);
        if (call.rank == 0) print(asked, call.ranks, block_bytes(call), figures, headed);
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
