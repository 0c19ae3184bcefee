// SPDX-License-Identifier: BSD-3-Clause
//
// gantry trace COMMAND...: runs the command with GANTRY_TRACE_FILE and puts the timelines of all ranks
// into one file that Perfetto and Chrome open. Exit status: the command's.
#include "commands.hpp"

#include "answer.hpp"
#include "job_run.hpp"
#include "timelines.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace gantry::tool {

namespace fs = std::filesystem;

namespace {

std::vector<RankTimeline> timelines_in(const fs::path& folder) {
    std::vector<RankTimeline> ranks;
    for (const fs::path& file : files_in(folder, ".timeline")) {
        Result<RankTimeline> read = timeline_from(contents(file));
        if (read.ok())
            ranks.push_back(std::move(*read));
        else
            fmt::print(stderr, "gantry trace: {}: {}\n", file.string(), read.status().text());
    }
    std::ranges::sort(ranks, {}, &RankTimeline::rank);
    return ranks;
}

}  // namespace

int trace(const TraceOptions& options) {
    if (options.command.empty() && !fs::is_directory(options.folder)) {
        fmt::print(stderr, "gantry trace: there is no folder {}\n", options.folder);
        return 2;
    }
    const TemporaryFolder temporary;
    const fs::path folder = folder_for_records("trace", options.folder, temporary);
    if (folder.empty()) return 126;
    int status = 0;
    if (!options.command.empty()) {
        setenv("GANTRY_TRACE_FILE", (folder / "%r-%p.timeline").c_str(), 1);
        status = run("trace", options.command, Output::shown);
    }
    std::vector<RankTimeline> ranks = timelines_in(folder);
    if (ranks.empty()) {
        if (options.command.empty())
            fmt::print(stderr, "gantry trace: no timeline of a rank lies in {}\n", options.folder);
        else if (status != kNotStarted)
            fmt::print(stderr,
                       "gantry trace: no rank wrote a timeline. Did the command run with Gantry's "
                       "libmpi_abi.so.1, and reach MPI_Finalize?\n");
        return status != 0 ? status : 1;
    }
    align_clocks(ranks);
    std::ofstream out(options.output);
    out << to_trace_format(ranks);
    out.close();
    if (!out) {
        fmt::print(stderr, "gantry trace: writing {} failed\n", options.output);
        return status != 0 ? status : 1;
    }
    std::size_t events = 0;
    std::uint64_t left_out = 0;
    Nanoseconds end = 0;
    for (const RankTimeline& rank : ranks) {
        events += rank.events.size();
        left_out += rank.left_out;
        for (const TimelineEvent& event : rank.events)
            end = std::max(end, event.end);
    }
    fmt::print(stderr,
               "gantry trace: {} holds {} events of {} rank{} in {:.3f} s; open it at "
               "https://ui.perfetto.dev or in chrome://tracing\n",
               options.output, events, ranks.size(), ranks.size() == 1 ? "" : "s",
               static_cast<double>(end) / 1e9);
    if (left_out > 0)
        fmt::print(stderr,
                   "gantry trace: {} later events were left out; GANTRY_TRACE_EVENTS raises how "
                   "many a rank keeps\n",
                   left_out);
    return status;
}

}  // namespace gantry::tool
