// SPDX-License-Identifier: BSD-3-Clause
//
// What the user asked gantry-bench for; the same on both ranks.
#pragma once

#include "base/units.hpp"
#include "rows.hpp"

#include <string>
#include <vector>

namespace gantry::bench {

enum class Benchmark {
    latency,
    sendrecv,
    bw,
    bibw,
    mr,
    overlap,
    fresh,
    demo,
    // One-sided operations.
    put,
    get,
    accumulate,
    fetch_op,
    cas
};
bool is_one_sided(Benchmark benchmark);

// Of one-sided operations: what is measured, what ends them, and how the window was made.
enum class Measure { latency, bw, bibw, rate };
enum class Sync { flush, fence, pscw, lock };
enum class WindowKind { allocate, create, dynamic, shared };

// Where a rank's message buffers are.
enum class Placement : char {
    device = 'D',
    host = 'H',
    managed = 'M',
    pinned = 'P',
    openacc = 'A'
};
// Memory of a GPU that is one allocation of its own, reached by copies.
inline bool is_device(Placement placement) {
    return placement == Placement::device || placement == Placement::openacc;
}

struct Options {
    Benchmark benchmark = Benchmark::latency;
    Placement placement[2] = {Placement::device, Placement::device};
    std::vector<Bytes> sizes;  // of messages; never empty once parsed
    int iterations = 0;        // samples per size; 0: by size
    Rows rows;                 // of each message
    int window = 0;            // messages in flight of bw, bibw and mr; 0: by size
    Measure measure = Measure::latency;
    Sync sync = Sync::flush;
    WindowKind window_kind = WindowKind::create;
    std::vector<int> gpus;  // of rank 0 and 1; empty: one each if there are two
    bool validate = true;
    bool forms = false;                      // persistent and partitioned messages beside it
    bool staged = false, pipelined = false;  // baselines beside the library
    bool library =
        true;  // false: only the baselines (an MPI that knows no device memory would crash)
    bool json = false;
    int pairs = 1;        // of ranks; mr only
    bool busy = false;    // the second rank of each pair keeps its GPU busy
    bool floors = false;  // bare driver copies beside the library
    double compute = 2;   // overlap: computing lasts so many transfers
    int buffers = 1000;   // fresh: on each side
    int uses = 1;         // fresh: messages to each of them
    std::string rails;    // network devices, compared with each other and all together
    std::string peers;    // a folder with other libraries
    int rounds = 3;       // of jobs beside each other
    int patience = 0;     // seconds for one of them; 0: by the first one
};

const char* name(Benchmark benchmark);
const char* name(Measure measure);
const char* name(Sync sync);
const char* name(WindowKind kind);
// Of accumulate, fetch_op and cas.
inline constexpr Bytes kItemBytes = 8;
// Where both ranks are origin and target.
inline bool goes_both_ways(const Options& options) {
    return options.measure == Measure::bibw;
}
// Ends the program itself for --help and mistakes (told by `talk` only, so that two ranks do not
// say it twice).
Options parse(int argc, char** argv, bool talk);
// The arguments of one job of a comparison: all but what concerns the comparison.
std::vector<std::string> arguments_of_a_run(const Options& options);
// The command line that would run one size again, in one job: with all that was asked for but
// what concerns the comparison of several.
std::string command_for(const Options& options, Bytes bytes);

}  // namespace gantry::bench
