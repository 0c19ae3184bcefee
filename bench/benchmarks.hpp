// SPDX-License-Identifier: BSD-3-Clause
//
// The benchmarks, one file each. Called on both ranks.
#pragma once

#include "options.hpp"
#include "way.hpp"

namespace gantry::bench {

void latency(const Options& options);
void sendrecv(const Options& options);
void bandwidth(const Options& options);  // bw and bibw
void message_rate(const Options& options);
void overlap(const Options& options);
void fresh(const Options& options);
void demo(const Options& options);
void one_sided(const Options& options);  // put, get, accumulate, fetch_op, cas

// After MPI_Finalize, when Gantry has written its record: which path the demo's messages took.
// Prints nothing for other libraries.
void prepare_taken_path();
void print_taken_path();
void forget_taken_path();  // the file it was in

// Seconds of a window from the first rank of a pair to the second, until its answer to all of it.
double answered_window(Way& way, const Buffer& outgoing, const Buffer& incoming);

}  // namespace gantry::bench
