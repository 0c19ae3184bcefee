// SPDX-License-Identifier: BSD-3-Clause
//
// The command line of mpiexec: options, a program with its arguments, and more such groups behind
// ':'.
#pragma once

#include "binding.hpp"
#include "gpus.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gantry::mpiexec {

using Variables = std::vector<std::pair<std::string, std::string>>;

// One group of ranks that run the same command.
struct App {
    int ranks = 1;
    bool ranks_given = false;
    int ranks_of_each_host = 0;  // -N; 0: not said
    std::vector<std::string> command;
    Variables variables;
    std::string folder;  // empty: where mpiexec was started
    std::string path;    // of a spawned one: where its program is looked for before PATH
};

struct Options {
    std::vector<App> apps;
    Variables variables;  // for every app
    bool label = false;
    bool quiet = false;
    int input_rank = 0;          // which rank reads standard input; -1: none
    std::string output_pattern;  // files for the ranks' output, %r: the rank; empty: our own
    std::string error_pattern;
    double timeout_seconds = 0;  // 0: none
    bool keep_going = false;     // a rank that dies does not end the job
    std::optional<BindTo> bind_to;
    GpuWish gpus;
    bool report_bindings = false;
    // Jobs on several hosts, which another launcher starts (handover.hpp).
    std::string hosts;
    std::string host_file;
    std::string launcher;
    bool show_command = false;
    int serve = -1;  // no ranks of our own: the PMI socket of a program that spawns
    // What decides where ranks run has no meaning on one machine; a launcher may be told.
    int ranks_per_host = 0;
    std::string map_by;
    std::string rank_by;
    Variables mca;
    std::vector<std::string> ignored;  // options that were taken and mean nothing here, as written
    bool wants_another_launcher() const {
        return !hosts.empty() || !host_file.empty() || !launcher.empty();
    }
    int total_ranks() const;
};

enum class Wish { run, show_help, show_version, explain_mistake };

struct CommandLine {
    Wish wish = Wish::run;
    Options options;
    std::string mistake;
};

CommandLine parse(const std::vector<std::string>& arguments);
const char* help_text();

}  // namespace gantry::mpiexec
