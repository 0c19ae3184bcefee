// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include "job.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace gantry::bench {
namespace {

Bytes bytes_of(const std::string& text) {
    std::size_t used = 0;
    const auto value = static_cast<Bytes>(std::stoull(text, &used));
    const std::string suffix = text.substr(used);
    if (suffix.empty()) return value;
    if (suffix == "K" || suffix == "k") return value * kKiB;
    if (suffix == "M" || suffix == "m") return value * kMiB;
    if (suffix == "G" || suffix == "g") return value * kGiB;
    throw CLI::ValidationError("-m", "'" + text + "' is not a size such as 8, 64K or 4M");
}

void set_sizes(Options& options, const std::string& text) {
    const auto colon = text.find(':');
    try {
        options.smallest = bytes_of(text.substr(0, colon));
        options.largest =
            colon == std::string::npos ? options.smallest : bytes_of(text.substr(colon + 1));
    } catch (const std::logic_error&) {
        throw CLI::ValidationError("-m", "'" + text + "' is not MIN:MAX such as 1:4M");
    }
    if (options.smallest > options.largest)
        throw CLI::ValidationError("-m", "MIN is larger than MAX");
}

Placement placement_of(const std::string& text) {
    for (Placement placement :
         {Placement::device, Placement::host, Placement::managed, Placement::pinned})
        if (text.size() == 1 && std::toupper(text[0]) == static_cast<char>(placement))
            return placement;
    throw CLI::ValidationError(
        "placement",
        "'" + text + "' is none of D (device), H (host), M (managed), P (pinned host)");
}

}  // namespace

const char* name(Benchmark benchmark) {
    switch (benchmark) {
        case Benchmark::latency: return "latency";
        case Benchmark::bw: return "bw";
        case Benchmark::bibw: return "bibw";
        case Benchmark::demo: return "demo";
    }
    return "?";
}

Options parse(int argc, char** argv, bool talk) {
    Options options;
    std::vector<std::string> placements;
    std::string sizes, baseline;
    bool no_validation = false;
    CLI::App app("gantry-bench: point-to-point messages between two ranks, host and device memory");
    app.require_subcommand(1);
    struct Row {
        Benchmark benchmark;
        const char* help;
    };
    for (const Row& row :
         {Row{Benchmark::latency, "half a round trip of one message"},
          Row{Benchmark::bw, "one way, a window of messages in flight"},
          Row{Benchmark::bibw, "both ways at once, a window of messages in flight"}}) {
        CLI::App* command = app.add_subcommand(name(row.benchmark), row.help);
        command
            ->add_option("placement", placements,
                         "buffers of rank 0 and of rank 1: D device, H host, M managed, P pinned "
                         "host (default D D)")
            ->expected(0, 2);
        command->add_option("-m,--sizes", sizes, "message sizes, doubling: MIN:MAX (default 1:4M)")
            ->type_name("MIN:MAX");
        command
            ->add_option("-i,--iterations", options.iterations,
                         "samples of each size (default: by size)")
            ->check(CLI::PositiveNumber);
        command
            ->add_option("-w,--window", options.window,
                         "messages in flight (default: by size, at most 64)")
            ->check(CLI::PositiveNumber);
        command
            ->add_option("--gpus", options.gpus,
                         "device of rank 0 and of rank 1 (default: 0,1 if there are two)")
            ->delimiter(',');
        command
            ->add_option("--baseline", baseline,
                         "beside the library: staged (copy, send, copy), user-pipelined (by hand, "
                         "best block), all")
            ->check(CLI::IsMember({"staged", "user-pipelined", "all", "none"}));
        command->add_flag(
            "!--no-library", options.library,
            "only the baselines (for an MPI that knows no device memory and would crash)");
        command->add_flag(
            "--no-validation", no_validation,
            "do not check the data (every byte of every message is checked otherwise)");
        command->add_flag("--json", options.json, "JSON instead of columns");
        command->callback([&options, benchmark = row.benchmark] { options.benchmark = benchmark; });
    }
    CLI::App* demo = app.add_subcommand(
        "demo", "4 MiB from device to device, verified, beside doing it by hand");
    demo->add_option("--gpus", options.gpus, "device of rank 0 and of rank 1")->delimiter(',');
    demo->callback([&options] { options.benchmark = Benchmark::demo; });

    try {
        app.parse(argc, argv);
        if (!sizes.empty()) set_sizes(options, sizes);
        for (std::size_t i = 0; i < placements.size(); ++i)
            options.placement[i] = placement_of(placements[i]);
        if (placements.size() == 1) options.placement[1] = options.placement[0];
    } catch (const CLI::ParseError& error) {
        int status = 0;
        if (talk)
            status = app.exit(error);
        else
            status = error.get_exit_code();
        finish(status);
    }
    options.staged = baseline == "staged" || baseline == "all";
    options.pipelined = baseline == "user-pipelined" || baseline == "all";
    options.validate = !no_validation;
    if (!options.library && !options.staged && !options.pipelined)
        options.staged = options.pipelined = true;
    if (options.benchmark == Benchmark::demo) {
        options.smallest = options.largest = 4 * kMiB;
        options.staged = options.pipelined = true;
    }
    return options;
}

std::string command_for(const Options& options, Bytes bytes) {
    std::string text = fmt::format("mpiexec -n 2 gantry-bench {} {} {} -m {}",
                                   name(options.benchmark), static_cast<char>(options.placement[0]),
                                   static_cast<char>(options.placement[1]), bytes);
    if (options.iterations > 0) text += fmt::format(" -i {}", options.iterations);
    if (options.window > 0) text += fmt::format(" -w {}", options.window);
    if (!options.gpus.empty()) text += fmt::format(" --gpus {}", fmt::join(options.gpus, ","));
    if (options.staged || options.pipelined)
        text += fmt::format(" --baseline {}", options.staged && options.pipelined ? "all"
                                              : options.staged                    ? "staged"
                                                               : "user-pipelined");
    return text;
}

}  // namespace gantry::bench
