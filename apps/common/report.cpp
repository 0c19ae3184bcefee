// SPDX-License-Identifier: BSD-3-Clause
#include "report.hpp"

#include "mistake.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace gantry::apps {

Result result_of(Application& application, const std::string& exchange, Whole steps) {
    const Grid& grid = application.grid();
    double mine[kParts + 1], sum[kParts + 1], most[kParts + 1];
    for (int part = 0; part < kParts; ++part)
        mine[part] = application.watch().seconds(static_cast<Part>(part));
    mine[kParts] = application.watch().total();
    MPI_Allreduce(mine, sum, kParts + 1, MPI_DOUBLE, MPI_SUM, grid.comm);
    MPI_Allreduce(mine, most, kParts + 1, MPI_DOUBLE, MPI_MAX, grid.comm);
    const double per = steps > 0 ? 1e3 / static_cast<double>(steps) : 0;
    const double cells = static_cast<double>(grid.global[0]) * static_cast<double>(grid.global[1]) *
                         static_cast<double>(grid.global[2]);
    Result result;
    result.exchange = exchange;
    result.fields = application.checksum();
    result.ms_per_step = most[kParts] * per;
    result.cells_per_second =
        most[kParts] > 0 ? cells * static_cast<double>(steps) / most[kParts] : 0;
    for (int part = 0; part < kParts; ++part)
        result.part_ms[part] = sum[part] * per / grid.ranks;
    result.messages = application.messages_per_step();
    result.bytes = application.bytes_per_step();
    return result;
}

void print_heading() {
    std::string line = text("%-12s %10s %10s", "exchange", "ms/step", "Mcells/s");
    for (const char* name : kPartNames)
        line += text(" %8s", name);
    say("%s %6s %10s  %s", line.c_str(), "sends", "bytes", "fields");
}

void print_row(const Result& result) {
    std::string line = text("%-12s %10.4f %10.3f", result.exchange.c_str(), result.ms_per_step,
                            result.cells_per_second / 1e6);
    for (const double part : result.part_ms)
        line += text(" %8.4f", part);
    say("%s %6d %10lld  %016llx", line.c_str(), result.messages, result.bytes,
        static_cast<unsigned long long>(result.fields));
}

void write_json(const std::string& path, const Application& application, Whole steps,
                const std::vector<Result>& results) {
    const Grid& grid = application.grid();
    if (grid.rank != 0) return;
    std::string json =
        text("{\"run\": \"%s\", \"ranks\": %d, \"timed_steps\": %lld, \"exchanges\": [",
             application.words().c_str(), grid.ranks, steps);
    const char* between = "\n";
    for (const Result& result : results) {
        json += text(
            "%s  {\"exchange\": \"%s\", \"ms_per_step\": %.6g, \"cells_per_second\": %.6g, "
            "\"messages\": %d, \"bytes\": %lld, \"fields\": \"%016llx\", \"part_ms\": {",
            between, result.exchange.c_str(), result.ms_per_step, result.cells_per_second,
            result.messages, result.bytes, static_cast<unsigned long long>(result.fields));
        for (int part = 0; part < kParts; ++part)
            json += text("%s\"%s\": %.6g", part > 0 ? ", " : "", kPartNames[part],
                         result.part_ms[part]);
        json += "}}";
        between = ",\n";
    }
    json += "\n]}\n";
    std::FILE* out = std::fopen(path.c_str(), "w");
    const bool whole =
        out != nullptr && std::fwrite(json.data(), 1, json.size(), out) == json.size();
    if ((out != nullptr && std::fclose(out) != 0) || !whole)
        throw Failure("cannot write " + path + ": " + std::strerror(errno));
}

}  // namespace gantry::apps
