// SPDX-License-Identifier: BSD-3-Clause
//
// Jobs on several hosts belong to the launchers that exist for them: when hosts are asked for,
// mpiexec writes the command line of one that is installed (srun inside a Slurm allocation, PRRTE,
// Hydra, Open MPI 4) and becomes it. Which one, and with which arguments, are plain functions.
#pragma once

#include "options.hpp"

#include <string>
#include <vector>

namespace gantry::mpiexec {

enum class Kind { slurm, prrte, hydra, orte };

struct Installed {
    Kind kind;
    std::string path;
};

// Hosts of --hosts "a:4,b" or of a file with lines "a slots=4", "a:4" or "a"; `mistake` is a
// sentence when they cannot be read.
struct Host {
    std::string name;
    int slots = 0;  // 0: not said
};
struct Hosts {
    std::vector<Host> hosts;
    std::string mistake;
};
Hosts parse_hosts(const std::string& list);
Hosts read_hostfile(const std::string& path);

// How many ranks an app has where -n does not say: -N for each host, else one for each slot.
void count_ranks(App& app, const std::vector<Host>& hosts);

// The launchers in PATH, best first; `wanted` (--launcher) is a program's name or path, or empty.
std::vector<Installed> installed_launchers(const std::string& wanted, bool inside_slurm);

// The command line that starts `options` there; `mistake` when this launcher cannot.
struct Command {
    std::vector<std::string> words;
    std::string mistake;
};
Command command_for(const Installed& launcher, const Options& options,
                    const std::vector<Host>& hosts, const Variables& passed_on);

// Does not come back when it works; else tells why on standard error and returns the exit code.
int hand_over(Options options);

}  // namespace gantry::mpiexec
