// SPDX-License-Identifier: BSD-3-Clause
#include "process_jobs.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <vector>

namespace gantry::reproduce {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Of the programs beside us, or of those that are installed for tests.
fs::path program(const Place& place, const std::string& name) {
    const fs::path installed = place.programs / "apps" / name;
    return fs::exists(installed) ? installed : place.programs / name;
}

struct Printed {
    std::string text;
    int status = 0;
};
std::optional<Printed> output_of(const Place& place, const std::string& words) {
    const std::size_t space = words.find(' ');
    const std::string line =
        fmt::format("timeout 300 env {} '{}' -n {} '{}' {} 2>&1", place.environment,
                    (place.programs / "mpiexec").string(), place.ranks,
                    program(place, words.substr(0, space)).string(), words.substr(space + 1));
    std::FILE* pipe = popen(line.c_str(), "r");
    if (pipe == nullptr) return {};
    std::string text;
    std::array<char, 4096> piece;
    while (const std::size_t got = std::fread(piece.data(), 1, piece.size(), pipe))
        text.append(piece.data(), got);
    return Printed{text, pclose(pipe)};
}

Job failure(const std::string& words, const std::string& text) {
    return {{},
            fmt::format("{} failed: {}", words,
                        text.substr(0, std::min<std::size_t>(text.find('\n'), 160)))};
}

Time time_of(const json& way, const char* value) {
    return {way[value].get<double>(), way["low"].get<double>(), way["high"].get<double>()};
}

void add(Job& job, const std::string& name, const Time& time) {
    job.ways.emplace(job.ways.empty() ? kLibrary : name, time);
}

}  // namespace

std::optional<Time> Job::time(const std::string& way) const {
    const auto found = ways.find(way);
    return found != ways.end() ? std::optional(found->second) : std::nullopt;
}

Job run_bench(const Place& place, const std::string& words) {
    const std::string line = "gantry-bench " + words + " --json";
    const std::optional<Printed> printed = output_of(place, line);
    if (!printed) return {{}, "starting a shell failed"};
    Job job;
    const std::size_t begin = printed->text.find('{');
    if (printed->status != 0 || begin == std::string::npos) return failure(line, printed->text);
    const json table = json::parse(printed->text.substr(begin), nullptr, false);
    if (table.is_object() && table.contains("rows")) {
        for (const json& way : table["rows"][0]["ways"])
            add(job, way["name"], time_of(way, "value"));
    } else {  // a line for each way, the library first
        std::istringstream lines(printed->text);
        for (std::string each; std::getline(lines, each);) {
            const json way = json::parse(each, nullptr, false);
            if (way.is_object() && way.contains("way")) add(job, way["way"], time_of(way, "us"));
        }
    }
    return job.ways.empty() ? failure(line, printed->text) : job;
}

Job run_application(const Place& place, const std::string& words) {
    const fs::path file =
        fs::temp_directory_path() / fmt::format("gantry-reproduce-{}.json", getpid());
    const std::string line = fmt::format(
        "{} --exchange copies,staged,datatypes --report 0 --json '{}'", words, file.string());
    const std::optional<Printed> printed = output_of(place, line);
    std::ifstream in(file);
    const json table = json::parse(in, nullptr, false);
    in.close();
    std::error_code ignored;
    fs::remove(file, ignored);
    if (!printed) return {{}, "starting a shell failed"};
    Job job;
    if (table.is_object())
        for (const json& row : table["exchanges"]) {
            const double time = row["ms_per_step"].get<double>();
            job.ways.emplace(row["exchange"].get<std::string>(), Time{time, time, time});
        }
    return job.ways.size() == 3 ? job : failure(words, printed->text);
}

Ours failed(const std::string& story) {
    Ours ours;
    ours.reason = "failed";
    ours.story = story;
    return ours;
}

Ours lower(const Job& job, const std::string& way, const Job& other, const std::string& baseline) {
    const std::optional<Time> time = job.time(way), long_time = other.time(baseline);
    if (!time) return failed(job.failure);
    if (!long_time) return failed(other.failure);
    Ours ours;
    ours.value = 1 - time->value / long_time->value;
    ours.low = 1 - time->high / long_time->low;
    ours.high = 1 - time->low / long_time->high;
    return ours;
}

Ours median_of(int jobs, const std::function<Ours()>& job) {
    std::vector<Ours> all;
    for (int i = 0; i < jobs; ++i) {
        all.push_back(job());
        if (!all.back().value) return all.back();
    }
    std::ranges::sort(all, {}, [](const Ours& one) { return *one.value; });
    Ours ours;
    ours.value = all[all.size() / 2].value;
    ours.low = all.front().value;
    ours.high = all.back().value;
    return ours;
}

}  // namespace gantry::reproduce
