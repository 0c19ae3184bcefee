// SPDX-License-Identifier: BSD-3-Clause
#include "job.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace gantry::bench {

int rank() {
    static const int mine = [] {
        int number = 0;
        MPI_Comm_rank(MPI_COMM_WORLD, &number);
        return number;
    }();
    return mine;
}

int pairs() {
    static const int number = [] {
        int ranks = 0;
        MPI_Comm_size(MPI_COMM_WORLD, &ranks);
        return ranks / 2;
    }();
    return number;
}

void meet() {
    MPI_Barrier(MPI_COMM_WORLD);
}

double slowest(double seconds) {
    double largest = 0;
    MPI_Allreduce(&seconds, &largest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return largest;
}

bool launched() {
    for (const char* variable : {"PMI_RANK", "PMI_FD", "PMIX_RANK", "OMPI_COMM_WORLD_RANK",
                                 "GANTRY_RENDEZVOUS", "SLURM_PROCID"})
        if (std::getenv(variable) != nullptr) return true;
    return false;
}

std::string library_text() {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(text, &length);
    std::string line(text, static_cast<std::size_t>(length));
    std::istringstream words(line.substr(0, line.find('\n')));
    std::string tidy;
    for (std::string word; words >> word;)
        tidy += (tidy.empty() ? "" : " ") + word;
    return tidy;
}

std::string library_name() {
    return library_text().find("Gantry") != std::string::npos ? "Gantry" : "MPI";
}

void finish(int status) {
    std::fflush(nullptr);
    int initialized = 0;
    MPI_Initialized(&initialized);
    if (initialized != 0) MPI_Finalize();
    std::exit(status);
}

void give_up(const std::string& message) {
    fmt::print(stderr, "gantry-bench: rank {}: {}\n", rank(), message);
    std::fflush(nullptr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
}

}  // namespace gantry::bench
