// SPDX-License-Identifier: BSD-3-Clause
//
// Command lines of jobs: every rank reads the same one, and the first speaks for all.
#pragma once

#include "job.hpp"
#include "tools/command_line.hpp"

#include <CLI/CLI.hpp>

namespace gantry::bench {

// Reads the words, then lets `check` look at what was asked for; it throws CLI::ValidationError for what
// cannot be. For --help and for mistakes the job ends here, with words of the rank that is to `talk`.
template <class Check>
void read_command_line(CLI::App& app, int argc, char** argv, bool talk, Check check) {
    app.failure_message(command_line::mistake);
    try {
        app.parse(argc, argv);
        check();
    } catch (const CLI::ParseError& end) {
        if (talk) finish(command_line::exit_code(app, end));
        finish(end.get_exit_code() == 0 ? 0 : 2);
    }
}

}  // namespace gantry::bench
