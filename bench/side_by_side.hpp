// SPDX-License-Identifier: BSD-3-Clause
//
// Several runs of a benchmark beside each other: the same benchmark without and with the progress
// thread, as it is and with all messages staged, or with other MPI libraries. This process is no rank; it starts the jobs, in turn and
// for some rounds, and prints one table with medians over the rounds.
#pragma once

#include "options.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace gantry::bench {

// What one run tells: column -> size -> value. A run that fails says why and tells nothing.
struct Told {
    std::vector<std::string> columns;  // in order; the first is the run's own
    std::map<std::string, std::map<Bytes, double>> values;
    std::string unit, timed, library;
    bool smaller_is_better = true;
    std::string why_not;
};

struct Contender {
    std::string name;
    std::function<Told(int seconds)> run;  // ended after so many
    bool once = false;                     // too slow for every round
};

// Jobs of gantry-bench: `launcher` in front of the program; arguments as the user gave them.
Told run_gantry_bench(const std::string& name, const std::vector<std::string>& launcher,
                      const std::vector<std::pair<std::string, std::string>>& environment,
                      const Options& options, int seconds);

// The folder DIR of --peers: who of Intel MPI, Open MPI and UCX is there. Ends the program with a
// sentence when nobody is.
std::vector<Contender> peers_in(const std::string& folder, const Options& options);

// Whether these arguments ask for it.
bool wants_side_by_side(int argc, char** argv);
// Returns the program's exit code.
int side_by_side(const Options& options);

// An environment variable of ours, or nothing.
std::string inherited(const char* variable);
// Whether GANTRY_IPC keeps our processes from copying in each other's device memory; the peers
// then have to stage, too.
bool without_ipc();
// Whether any buffer needs the driver.
bool uses_devices(const Options& options);
// Folder of this program; a prefix has bin/ and libexec/ side by side.
std::string program_folder();

}  // namespace gantry::bench
