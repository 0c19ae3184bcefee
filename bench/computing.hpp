// SPDX-License-Identifier: BSD-3-Clause
//
// Computing without MPI, and how much of a call hides behind it. As the OSU benchmarks of nonblocking
// operations define it (osu_iallreduce and its kin, "Overlap(%)"):
//
//     hidden = 1 - (total - computing) / call        between 0 and 1
#pragma once

namespace gantry::bench {

// Arithmetic that a compiler cannot leave out and that touches one line of memory. So many steps, and
// not so many seconds: it takes longer when somebody else uses its processor.
void compute(long steps);
double seconds_per_step();

// In percent, of seconds.
double hidden_percent(double call, double computing, double total);

}  // namespace gantry::bench
