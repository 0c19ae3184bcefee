// SPDX-License-Identifier: BSD-3-Clause
//
// Which processors each rank of a job on this machine may use (docs/user/launching.md).
//
//   share    the allowed cores are divided among the ranks, neighbours together, no share across
//            NUMA nodes unless a share is larger than one. The default: every rank keeps room for
//            its own threads, and two jobs on one machine meet evenly, not on the same first cores
//   core     one core a rank
//   numa     the ranks are divided among the NUMA nodes, socket: among the sockets
//   none     the system moves ranks as it likes
//
// Allowed is what mpiexec itself may use: taskset, cgroups and an allocation are kept. A core means
// all of its hardware threads that are allowed.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::mpiexec {

struct Options;

enum class BindTo { share, core, numa, socket, none };
std::optional<BindTo> bind_to(std::string_view name);
const char* name_of(BindTo unit);

using Processors = std::vector<int>;  // the system's numbers, ascending

struct Core {
    int socket = 0;
    int numa_node = 0;
    Processors processors;
};

// Neighbours lie together. Where `system` (/sys) says nothing, every processor is a core of socket
// and node 0.
std::vector<Core> read_cores(const std::filesystem::path& system, const Processors& allowed);

enum class RankThreads { program_only, with_progress_thread };

struct Binding {
    std::vector<Processors> ranks;  // empty: nobody is bound
    std::string why_not;            // why nobody is
    std::string mistake;            // what was asked for cannot be had
};

Binding divide(BindTo unit, const std::vector<Core>& cores, int ranks, RankThreads threads);

// For the job and the machine that we run on.
Binding binding_for(const Options& options);
// One line a rank.
std::string report(const Binding& binding);

std::string listed(const Processors& processors);  // "0-3,8"
// The first line of a file of that form, as the kernel writes it; none: there is no such file.
Processors read_list(const std::filesystem::path& path);

}  // namespace gantry::mpiexec
