// SPDX-License-Identifier: BSD-3-Clause
//
// What is said of a run: a row of a table for each exchange, and all of it as JSON.
#pragma once

#include "application.hpp"

namespace gantry::apps {

struct Result {
    std::string exchange;
    std::uint64_t fields = 0;  // their checksum
    double ms_per_step = 0;    // on the slowest rank
    double cells_per_second = 0;
    double part_ms[kParts] = {};  // a step's, mean of the ranks
    int messages = 0;             // that rank 0 sends a step
    Whole bytes = 0;
};

// Of the steps that the watch saw; a collective call.
Result result_of(Application& application, const std::string& exchange, Whole steps);

void print_heading();
void print_row(const Result& result);
// By rank 0.
void write_json(const std::string& path, const Application& application, Whole steps,
                const std::vector<Result>& results);

}  // namespace gantry::apps
