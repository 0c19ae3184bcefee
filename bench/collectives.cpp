// SPDX-License-Identifier: BSD-3-Clause
//
// alltoall, allgather, allreduce, bcast, reduce_scatter: time of one blocking call, of any number of
// ranks. Each sample meets, calls a few times unmeasured, and takes the time of one call on the slowest
// rank. What arrived is checked behind every sample.
//
// BYTES is what one rank has for one other (alltoall), one rank's block (allgather, reduce_scatter), or
// the vector (allreduce, bcast).
#include "collectives.hpp"

#include "buffer.hpp"
#include "driver.hpp"
#include "job.hpp"
#include "measure.hpp"
#include "statistics.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

namespace gantry::bench {
namespace {

using Number = std::int32_t;

struct Asked {
    std::string operation;
    Placement placement = Placement::device;
    std::vector<Bytes> sizes;
    std::vector<int> gpus;
    int samples = 0;
    bool validate = true, json = false, in_place = false;
};

struct Job {
    int rank = 0, ranks = 1;
};

// How many blocks of BYTES the two buffers of a rank hold.
int blocks_out(const std::string& operation, int ranks) {
    return operation == "alltoall" || operation == "reduce_scatter" ? ranks : 1;
}
int blocks_in(const std::string& operation, int ranks) {
    return operation == "alltoall" || operation == "allgather" ? ranks : 1;
}

// The number at `index` of what `from` has for `to`.
Number value(int from, int to, std::size_t index, int sample) {
    return static_cast<Number>(from * 1009 + to * 31 + static_cast<int>(index % 4093) * 7 + sample);
}

void write_numbers(const Asked& asked, const Job& job, std::vector<Number>& numbers,
                   std::size_t count, int sample) {
    const int blocks = blocks_out(asked.operation, job.ranks);
    for (int block = 0; block < blocks; ++block)
        for (std::size_t i = 0; i < count; ++i)
            numbers[static_cast<std::size_t>(block) * count + i] =
                value(job.rank, block, i, sample);
}

Number expected(const Asked& asked, const Job& job, int block, std::size_t index, int sample) {
    if (asked.operation == "alltoall") return value(block, job.rank, index, sample);
    if (asked.operation == "allgather") return value(block, 0, index, sample);
    if (asked.operation == "bcast") return value(0, 0, index, sample);
    const int to = asked.operation == "reduce_scatter" ? job.rank : 0;
    Number sum = 0;
    for (int from = 0; from < job.ranks; ++from)
        sum += value(from, to, index, sample);
    return sum;
}

class Exercise {
  public:
    Exercise(const Asked& asked, const Job& job, Bytes bytes)
        : asked_(asked),
          job_(job),
          count_(std::max<Bytes>(bytes / sizeof(Number), 1)),
          out_(asked.placement,
               count_ * sizeof(Number) * blocks(blocks_out(asked.operation, job.ranks)), 1),
          in_(asked.placement,
              count_ * sizeof(Number) * blocks(blocks_in(asked.operation, job.ranks)), 1),
          numbers_(std::max(out_.total_bytes(), in_.total_bytes()) / sizeof(Number) + 1) {}

    // Seconds of one call.
    double sample(int number, int before) {
        if (number == 0 || asked_.validate) renew(number);
        for (int i = 0; i < before; ++i)
            call();
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = now_seconds();
        call();
        const double seconds = now_seconds() - start;
        if (asked_.validate) check(number);
        return seconds;
    }

  private:
    static Bytes blocks(int number) { return static_cast<Bytes>(number); }

    void renew(int number) {
        write_numbers(asked_, job_, numbers_, count_, number);
        out_.write(reinterpret_cast<const std::byte*>(numbers_.data()));
        std::fill(numbers_.begin(), numbers_.end(), -1);
        // A broadcast's root keeps what it sends in the buffer that the others receive into.
        if (asked_.operation == "bcast" && job_.rank == 0)
            write_numbers(asked_, job_, numbers_, count_, number);
        in_.write(reinterpret_cast<const std::byte*>(numbers_.data()));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    void call() {
        const auto count = static_cast<int>(count_);
        void *const out = out_.message(0), *const in = in_.message(0);
        if (asked_.operation == "alltoall")
            MPI_Alltoall(out, count, MPI_INT, in, count, MPI_INT, MPI_COMM_WORLD);
        else if (asked_.operation == "allgather")
            MPI_Allgather(out, count, MPI_INT, in, count, MPI_INT, MPI_COMM_WORLD);
        else if (asked_.operation == "allreduce")
            MPI_Allreduce(out, in, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        else if (asked_.operation == "bcast")
            MPI_Bcast(in, count, MPI_INT, 0, MPI_COMM_WORLD);
        else
            MPI_Reduce_scatter_block(out, in, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    void check(int number) {
        in_.read(reinterpret_cast<std::byte*>(numbers_.data()));
        for (int block = 0; block < blocks_in(asked_.operation, job_.ranks); ++block)
            for (std::size_t i = 0; i < count_; ++i) {
                const Number got = numbers_[static_cast<std::size_t>(block) * count_ + i];
                const Number wanted = expected(asked_, job_, block, i, number);
                if (got == wanted) continue;
                fmt::print(stderr,
                           "gantry-bench: {} of {} bytes: rank {} has {} and not {} at {} of block "
                           "{}\n",
                           asked_.operation, count_ * sizeof(Number), job_.rank, got, wanted, i,
                           block);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
    }

    const Asked& asked_;
    const Job& job_;
    std::size_t count_;
    Buffer out_, in_;
    std::vector<Number> numbers_;
};

constexpr int kWarmUp = 30;

// The median of the slowest rank's times.
double measure_size(const Asked& asked, const Job& job, Bytes bytes) {
    Exercise exercise(asked, job, bytes);
    const int samples = asked.samples > 0 ? asked.samples : bytes <= kMiB ? 60 : 15;
    double slowest = exercise.sample(0, kWarmUp);
    const int before = rounds_before_the_clock(slowest);
    std::vector<double> times;
    for (int number = 1; number <= samples; ++number) {
        const double mine = exercise.sample(number, before);
        MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        times.push_back(slowest);
    }
    return median(times).value * 1e6;
}

Asked parse(int argc, char** argv) {
    Asked asked;
    std::string placement = "D";
    CLI::App app("Collective operations: time of one call, in any kind of memory");
    app.add_option("operation", asked.operation)->required();
    app.add_option("placement", placement, "D device, H host, M managed, P page-locked")
        ->check(CLI::IsMember({"D", "H", "M", "P"}));
    std::vector<std::string> sizes;
    app.add_option("-m,--sizes", sizes, "bytes, such as 8,64K,1M")->delimiter(',');
    app.add_option("--gpus", asked.gpus, "of the ranks, in turn; all there are if not said")
        ->delimiter(',');
    app.add_option("-i,--iterations", asked.samples, "samples of each size");
    app.add_flag("!--no-validation", asked.validate, "do not check what arrived");
    app.add_flag("--json", asked.json, "a line of JSON for each size");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& wrong) {
        const int code = first() ? app.exit(wrong) : 1;
        finish(code);
    }
    asked.placement = static_cast<Placement>(placement[0]);
    if (sizes.empty()) sizes = {"8", "4K", "64K", "256K", "1M", "4M"};
    for (std::string size : sizes) {
        Bytes unit = 1;
        if (size.ends_with('K')) unit = kKiB;
        if (size.ends_with('M')) unit = kMiB;
        asked.sizes.push_back(std::strtoull(size.c_str(), nullptr, 10) * unit);
    }
    return asked;
}

}  // namespace

bool is_collective(const char* word) {
    constexpr std::string_view kAll[] = {"alltoall", "allgather", "allreduce", "bcast",
                                         "reduce_scatter"};
    return std::ranges::find(kAll, std::string_view(word)) != std::end(kAll);
}

int collectives(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    Asked asked = parse(argc, argv);
    Job job;
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job.ranks);
    if (asked.placement != Placement::host) {
        std::string why_none;
        const int devices = driver().count(&why_none);
        for (int gpu = 0; asked.gpus.empty() && gpu < devices; ++gpu)
            asked.gpus.push_back(gpu);
        const auto all = static_cast<int>(std::max<std::size_t>(asked.gpus.size(), 1));
        driver().start(asked.gpus.empty() ? 0
                                          : asked.gpus[static_cast<std::size_t>(job.rank % all)]);
    }
    if (job.rank == 0 && !asked.json)
        fmt::print("# {} {}, {} ranks, median of the slowest rank\n# {:>10} {:>12}\n",
                   asked.operation, static_cast<char>(asked.placement), job.ranks, "bytes", "us");
    for (const Bytes bytes : asked.sizes) {
        const double microseconds = measure_size(asked, job, bytes);
        if (job.rank != 0) continue;
        if (asked.json)
            fmt::print(
                "{{\"benchmark\": \"{}\", \"placement\": \"{}\", \"ranks\": {}, \"bytes\": {}, "
                "\"us\": {:.2f}}}\n",
                asked.operation, static_cast<char>(asked.placement), job.ranks, bytes,
                microseconds);
        else
            fmt::print("{:>12} {:>12.2f}\n", bytes, microseconds);
        std::fflush(stdout);
    }
    driver().stop();
    MPI_Finalize();
    return 0;
}

}  // namespace gantry::bench
