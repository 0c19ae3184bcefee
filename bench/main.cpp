// SPDX-License-Identifier: BSD-3-Clause
//
// gantry-bench latency | sendrecv | bw | bibw | mr | overlap | fresh | demo: messages between pairs of
// ranks. put | get | accumulate | fetch_op | cas: one-sided operations between two ranks. allreduce, alltoall, ...: a collective operation of any number of
// ranks. io: files. Runs with any MPI.
#include "benchmarks.hpp"
#include "busy.hpp"
#include "collectives.hpp"
#include "driver.hpp"
#include "io.hpp"
#include "job.hpp"
#include "measure.hpp"
#include "openacc.hpp"
#include "plot.hpp"
#include "side_by_side.hpp"
#include "startup.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <string_view>

int main(int argc, char** argv) {
    using namespace gantry::bench;
    if (argc > 1 && is_collective(argv[1])) return collectives(argc, argv);
    if (argc > 1 && std::string_view(argv[1]) == "io") return io(argc, argv);
    if (argc > 1 && std::string_view(argv[1]) == "plot") return plot(argc, argv);
    if (argc > 1 && std::string_view(argv[1]) == "startup") return startup(argc, argv);
    if (wants_side_by_side(argc, argv) && !launched()) return side_by_side(parse(argc, argv, true));
    const bool wants_demo = argc > 1 && std::string_view(argv[1]) == "demo";
    if (wants_demo) prepare_taken_path();
    MPI_Init(&argc, &argv);
    const bool is_first = first();
    Options options = parse(argc, argv, is_first);
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (!options.peers.empty() || !options.rails.empty()) {
        if (is_first)
            fmt::print(
                stderr,
                "gantry-bench: --peers and --rails start jobs themselves: run gantry-bench without "
                "mpiexec\n");
        finish(1);
    }
    if (ranks != 2 * options.pairs) {
        if (is_first)
            fmt::print(stderr,
                       "gantry-bench: {} {} {} ranks, not {}: mpiexec -n {} gantry-bench ...\n",
                       options.pairs, options.pairs == 1 ? "pair is" : "pairs are",
                       2 * options.pairs, ranks, 2 * options.pairs);
        finish(1);
    }
    prepare_device(options);
    std::optional<Busy> neighbour;
    if (options.busy && side() == 1) neighbour.emplace();
    switch (options.benchmark) {
        case Benchmark::latency: latency(options); break;
        case Benchmark::sendrecv: sendrecv(options); break;
        case Benchmark::bw:
        case Benchmark::bibw: bandwidth(options); break;
        case Benchmark::mr: message_rate(options); break;
        case Benchmark::overlap: overlap(options); break;
        case Benchmark::fresh: fresh(options); break;
        case Benchmark::demo: demo(options); break;
        case Benchmark::put:
        case Benchmark::get:
        case Benchmark::accumulate:
        case Benchmark::fetch_op:
        case Benchmark::cas: one_sided(options); break;
    }
    std::fflush(stdout);
    neighbour.reset();
    openacc().stop();
    driver().stop();
    MPI_Finalize();
    if (wants_demo) {
        if (is_first) print_taken_path();
        forget_taken_path();
    }
    return 0;
}
