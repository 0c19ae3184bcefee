// SPDX-License-Identifier: BSD-3-Clause
//
// startup: how long a program waits for its MPI, on the slowest rank.
//
//   MPI_Init             once: it is the first call of the process
//   first barrier        the ranks meet for the first time
//   session              MPI_Session_init, a communicator of mpi://WORLD, a barrier, and all given back;
//                        the median of several
#include "startup.hpp"

#include "command_line.hpp"
#include "statistics.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <chrono>
#include <vector>

namespace gantry::bench {
namespace {

constexpr int kSessions = 20;

double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// Seconds of one session on this rank.
double session() {
    const double begin = seconds_now();
    MPI_Session made;
    MPI_Group all;
    MPI_Comm comm;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &made);
    MPI_Group_from_session_pset(made, "mpi://WORLD", &all);
    MPI_Comm_create_from_group(all, "gantry-bench", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
    MPI_Group_free(&all);
    MPI_Session_finalize(&made);
    return seconds_now() - begin;
}

}  // namespace

int startup(int argc, char** argv) {
    bool json = false;
    CLI::App app(
        "How long MPI_Init, the first barrier and a session take, in us, on the slowest rank",
        "gantry-bench startup");
    app.add_flag("--json", json, "one line of JSON");
    const double begin = seconds_now();
    MPI_Init(&argc, &argv);
    const double initialised = seconds_now();
    // After MPI_Init, which must be the first call, and outside of both times.
    read_command_line(app, argc - 1, argv + 1, first(), [] {});
    const double ready = seconds_now();
    meet();
    const double met = seconds_now();
    const double init = slowest(initialised - begin), barrier = slowest(met - ready);
    std::vector<double> times;
    for (int i = 0; i < kSessions; ++i)
        times.push_back(slowest(session()));
    const double sessions = median(times).value;
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (first() && json)
        fmt::print(
            "{{\"benchmark\": \"startup\", \"ranks\": {}, \"init_us\": {:.1f}, "
            "\"first_barrier_us\": {:.1f}, \"session_us\": {:.1f}}}\n",
            ranks, init * 1e6, barrier * 1e6, sessions * 1e6);
    else if (first())
        fmt::print(
            "# startup, {}, {} ranks, us, the slowest rank\n{:<24}{:>12.1f}\n{:<24}{:>12.1f}\n"
            "{:<24}{:>12.1f}\n",
            library_text(), ranks, "MPI_Init", init * 1e6, "first barrier", barrier * 1e6,
            "session", sessions * 1e6);
    MPI_Finalize();
    return 0;
}

}  // namespace gantry::bench
