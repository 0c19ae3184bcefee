// SPDX-License-Identifier: BSD-3-Clause
//
// gantry-bench latency | bw | bibw | demo: messages between two ranks. Runs with any MPI.
#include "benchmarks.hpp"
#include "driver.hpp"
#include "job.hpp"
#include "measure.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <string_view>

int main(int argc, char** argv) {
    using namespace gantry::bench;
    const bool wants_demo = argc > 1 && std::string_view(argv[1]) == "demo";
    if (wants_demo) prepare_taken_path();
    MPI_Init(&argc, &argv);
    const bool is_first = first();
    Options options = parse(argc, argv, is_first);
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != 2) {
        if (is_first)
            fmt::print(
                stderr,
                "gantry-bench: measures between 2 ranks, not {}: mpiexec -n 2 gantry-bench ...\n",
                ranks);
        finish(1);
    }
    prepare_device(options);
    switch (options.benchmark) {
        case Benchmark::latency: latency(options); break;
        case Benchmark::bw:
        case Benchmark::bibw: bandwidth(options); break;
        case Benchmark::demo: demo(options); break;
    }
    std::fflush(stdout);
    driver().stop();
    MPI_Finalize();
    if (wants_demo) {
        if (is_first) print_taken_path();
        forget_taken_path();
    }
    return 0;
}
