// SPDX-License-Identifier: BSD-3-Clause
//
// Figures by real processes: jobs of gantry-bench, once on the simulated GPU and, where there is a real
// one, on that. Ranks of one machine: between them is shared memory or CUDA IPC, not the published network.
#include "figure.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <dlfcn.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>

namespace gantry::reproduce {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// One job of two ranks, and what it printed; with the reason where there is nothing.
struct Job {
    json printed;
    std::string reason;
};

struct Place {
    fs::path programs;        // mpiexec and gantry-bench
    std::string environment;  // words of env(1) in front
};

Job run(const Place& place, const std::string& words) {
    const std::string line = fmt::format("timeout 300 env {} '{}' -n 2 '{}' {} --json 2>&1",
                                         place.environment, (place.programs / "mpiexec").string(),
                                         (place.programs / "gantry-bench").string(), words);
    std::FILE* pipe = popen(line.c_str(), "r");
    if (pipe == nullptr) return {{}, "starting a shell failed"};
    std::string text;
    std::array<char, 4096> piece;
    while (const std::size_t got = std::fread(piece.data(), 1, piece.size(), pipe))
        text.append(piece.data(), got);
    const int status = pclose(pipe);
    Job job;
    const std::size_t begin = text.find('{');
    if (status == 0 && begin != std::string::npos)
        job.printed = json::parse(text.substr(begin), nullptr, false);
    if (!job.printed.is_object())
        job = {{},
               fmt::format("gantry-bench {} failed: {}", words,
                           text.substr(0, std::min<std::size_t>(text.find('\n'), 160)))};
    return job;
}

std::optional<double> value(const Job& job, const std::string& way) {
    if (!job.printed.is_object() || job.printed["rows"].empty()) return {};
    for (const json& each : job.printed["rows"][0]["ways"])
        if (each["name"] == way) return each["value"].get<double>();
    return {};
}

// What the library is called in the job's answer: its first way.
std::optional<double> library(const Job& job) {
    if (!job.printed.is_object() || job.printed["rows"].empty()) return {};
    return job.printed["rows"][0]["ways"][0]["value"].get<double>();
}

// Medians of a machine that does other things at the same time say nothing.
bool is_disturbed(const Job& job) {
    if (!job.printed.is_object()) return false;
    for (const json& row : job.printed["rows"])
        for (const json& way : row["ways"])
            if (way["high"].get<double>() - way["low"].get<double>() >
                0.5 * way["value"].get<double>())
                return true;
    return false;
}

Ours ratio_of(std::optional<double> time, std::optional<double> baseline, const Job& one,
              const Job& other) {
    if (!time || !baseline) return {{}, one.reason.empty() ? other.reason : one.reason};
    if (is_disturbed(one) || is_disturbed(other))
        return {{}, "samples lie too far apart: this machine was busy with other work"};
    return {*time / *baseline, ""};
}

Ours lower(std::optional<double> time, std::optional<double> baseline, const Job& one,
           const Job& other) {
    Ours ours = ratio_of(time, baseline, one, other);
    if (ours.value) ours.value = 1 - *ours.value;
    return ours;
}

Ours Figure::*which(bool real) {
    return real ? &Figure::gpu : &Figure::processes;
}

Figure* figure_of(Evidence& evidence, int row) {
    const auto found = std::ranges::find(evidence.figures, row, &Figure::row);
    return found != evidence.figures.end() ? &*found : nullptr;
}

void messages(Evidence& evidence, const Place& place, bool real) {
    Figure *naive = figure_of(evidence, 1), *user = figure_of(evidence, 3);
    if (naive == nullptr && user == nullptr) return;
    const Job job = run(place, "latency D D -m 4M -i 7 --baseline all");
    if (naive != nullptr) naive->*which(real) = lower(library(job), value(job, "staged"), job, job);
    if (user != nullptr)
        user->*which(real) = lower(library(job), value(job, "user-pipelined"), job, job);
}

void ipc(Evidence& evidence, const Place& place, bool real) {
    Figure *two_sided = figure_of(evidence, 13), *one_sided = figure_of(evidence, 14);
    if (two_sided == nullptr && one_sided == nullptr) return;
    const char* words = "latency D D -m 256K";
    const Job with = run(place, words);
    if (two_sided != nullptr) {
        Place apart = place;
        apart.environment += " GANTRY_IPC=off";
        const Job without = run(apart, words);
        two_sided->*which(real) = lower(library(with), library(without), with, without);
    }
    if (one_sided == nullptr) return;
    const Job put = run(place, "put D D -m 256K");
    one_sided->*which(real) = lower(library(put), library(with), put, with);
}

void openacc(Evidence& evidence, const Place& place, bool real) {
    Figure* figure = figure_of(evidence, 18);
    if (figure == nullptr) return;
    const Job acc = run(place, "latency A A -m 1M");
    const Job cuda = run(place, "latency D D -m 1M");
    figure->*which(real) = ratio_of(library(acc), library(cuda), acc, cuda);
}

bool real_gpu() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return false;
    const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(library, "cuInit"));
    const auto count = reinterpret_cast<int (*)(int*)>(dlsym(library, "cuDeviceGetCount"));
    const auto name = reinterpret_cast<int (*)(char*, int, int)>(dlsym(library, "cuDeviceGetName"));
    int devices = 0;
    char words[128] = {};
    return init != nullptr && count != nullptr && name != nullptr && init(0) == 0 &&
           count(&devices) == 0 && devices > 0 && name(words, sizeof words, 0) == 0 &&
           !std::string_view(words).starts_with("Simulated");
}

}  // namespace

void add_process_figures(Evidence& evidence, const std::string& folder, int scale) {
    const fs::path programs(folder);
    const auto say = [&evidence](Ours Figure::*column, const std::string& why) {
        for (Figure& figure : evidence.figures)
            if (!(figure.*column).value && (figure.*column).reason.empty())
                (figure.*column).reason = why;
    };
    fs::path simulator;
    for (const char* each : {"../simgpu", "../libexec/gantry/simgpu", "../gantry/simgpu"})
        if (fs::exists(programs / each / "libcuda.so.1"))
            simulator = fs::canonical(programs / each);
    if (!fs::exists(programs / "gantry-bench") || !fs::exists(programs / "mpiexec")) {
        say(&Figure::processes, "no gantry-bench in " + folder);
        say(&Figure::gpu, "no gantry-bench in " + folder);
        return;
    }
    if (simulator.empty()) {
        say(&Figure::processes, "no simulated GPU beside " + folder);
    } else {
        const std::string library = fmt::format("LD_LIBRARY_PATH='{}'", simulator.string());
        const auto simulated = [&](const char* machine, int devices) {
            return Place{programs,
                         fmt::format("{0} SIMGPU=machine={1},dev={2},scale={3},run=reproduce-{1} "
                                     "GANTRY_MACHINE={1}",
                                     library, machine, devices, scale)};
        };
        const Place old = simulated("c2050-qdr", 1), now = simulated("h200", 2);
        messages(evidence, old, false);
        ipc(evidence, now, false);
        openacc(evidence, now, false);
        say(&Figure::processes,
            "needs two machines; bench/published_network does it with namespaces");
    }
    if (!real_gpu()) {
        say(&Figure::gpu, "this machine has no GPU");
        return;
    }
    const Place real{programs, ""};
    messages(evidence, real, true);
    ipc(evidence, real, true);
    openacc(evidence, real, true);
    say(&Figure::gpu, "needs a network of GPUs");
}

}  // namespace gantry::reproduce
