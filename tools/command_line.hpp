// SPDX-License-Identifier: BSD-3-Clause
//
// What the programs say of a mistake in their command line: one line with the program, the mistake and
// where help is; the exit code is 2. CLI11's own words do not name the program, and it has a code for each kind.
#pragma once

#include <CLI/CLI.hpp>

#include <cctype>
#include <string>

namespace gantry::command_line {

// "gantry tune: could not convert: --gpu = x. See gantry tune --help"
inline std::string mistake(const CLI::App* app, const CLI::Error& error) {
    std::string program = app->get_name();
    for (const CLI::App* command : app->get_subcommands())
        program += " " + command->get_name();
    std::string words = error.what();
    if (words.size() > 1 && std::islower(static_cast<unsigned char>(words[1])))
        words[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(words[0])));
    return program + ": " + words + ". See " + program + " --help\n";
}

// Prints help, the version or the mistake; the answer is the exit code.
inline int exit_code(const CLI::App& app, const CLI::ParseError& end) {
    return app.exit(end) == 0 ? 0 : 2;
}

// CLI11's PositiveNumber answers with the range of a double, in 300 digits.
inline CLI::Validator above_zero() {
    const auto check = [](std::string& text) {
        double value = 0;
        return CLI::detail::lexical_cast(text, value) && value > 0
                   ? std::string()
                   : "takes a number above 0, not '" + text + "'";
    };
    return CLI::Validator(check, "POSITIVE");
}

}  // namespace gantry::command_line
