// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include "job.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

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

// All that doubling gives between the two, 0 first if it is asked for.
std::vector<Bytes> doubling(Bytes smallest, Bytes largest) {
    std::vector<Bytes> sizes;
    for (Bytes bytes = smallest; bytes <= largest; bytes = bytes == 0 ? 1 : bytes * 2)
        sizes.push_back(bytes);
    return sizes;
}

}  // namespace

std::vector<Bytes> sizes_of(const std::string& text) {
    std::vector<Bytes> sizes;
    std::istringstream items(text);
    for (std::string item; std::getline(items, item, ',');) {
        const auto colon = item.find(':');
        Bytes smallest = 0, largest = 0;
        try {
            smallest = bytes_of(item.substr(0, colon));
            largest = colon == std::string::npos ? smallest : bytes_of(item.substr(colon + 1));
        } catch (const std::logic_error&) {
            throw CLI::ValidationError(
                "-m", "'" + item + "' is not a size such as 64K or a range MIN:MAX such as 1:4M");
        }
        if (smallest > largest) throw CLI::ValidationError("-m", "MIN is larger than MAX");
        for (const Bytes bytes : doubling(smallest, largest))
            sizes.push_back(bytes);
    }
    return sizes;
}

namespace {

std::vector<Bytes> default_sizes(Benchmark benchmark) {
    switch (benchmark) {
        case Benchmark::overlap: return doubling(64 * kKiB, 4 * kMiB);
        case Benchmark::mr: return doubling(1, 64 * kKiB);
        case Benchmark::fresh: return sizes_of("8,1K,16K,64K,256K,1M");
        default: return doubling(1, 4 * kMiB);
    }
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

// What makes a job what it is; an option that was not given is not named.
std::vector<std::string> words_of(const Options& options, const std::vector<Bytes>& sizes) {
    std::vector<std::string> words = {name(options.benchmark)};
    const auto add = [&words](auto... more) { (words.emplace_back(more), ...); };
    const std::string gpus = fmt::format("{}", fmt::join(options.gpus, ","));
    if (options.benchmark == Benchmark::demo) {  // has no other option
        if (!gpus.empty()) add("--gpus", gpus);
        return words;
    }
    for (const Placement placement : options.placement)
        add(std::string(1, static_cast<char>(placement)));
    add("-m", fmt::format("{}", fmt::join(sizes, ",")));
    if (options.iterations > 0) add("-i", std::to_string(options.iterations));
    if (options.window > 0) add("-w", std::to_string(options.window));
    if (!gpus.empty()) add("--gpus", gpus);
    if (options.staged || options.pipelined)
        add("--baseline", options.staged && options.pipelined ? "all"
                          : options.staged                    ? "staged"
                                                              : "user-pipelined");
    const Options by_default;
    if (!options.library) add("--no-library");
    if (!options.validate) add("--no-validation");
    if (options.busy) add("--busy");
    if (options.floors) add("--floor");
    if (options.pairs != by_default.pairs) add("--pairs", std::to_string(options.pairs));
    if (options.compute != by_default.compute) add("--compute", fmt::format("{}", options.compute));
    if (options.buffers != by_default.buffers) add("-n", std::to_string(options.buffers));
    if (options.uses != by_default.uses) add("--uses", std::to_string(options.uses));
    if (options.json) add("--json");
    return words;
}

}  // namespace

const char* name(Benchmark benchmark) {
    switch (benchmark) {
        case Benchmark::latency: return "latency";
        case Benchmark::sendrecv: return "sendrecv";
        case Benchmark::bw: return "bw";
        case Benchmark::bibw: return "bibw";
        case Benchmark::mr: return "mr";
        case Benchmark::overlap: return "overlap";
        case Benchmark::fresh: return "fresh";
        case Benchmark::demo: return "demo";
    }
    return "?";
}

Options parse(int argc, char** argv, bool talk) {
    Options options;
    std::vector<std::string> placements;
    std::string sizes, baseline;
    bool no_validation = false, pageable = false;
    CLI::App app("gantry-bench: point-to-point messages between two ranks, host and device memory");
    app.require_subcommand(1);
    struct Row {
        Benchmark benchmark;
        const char* help;
    };
    for (const Row& row :
         {Row{Benchmark::latency, "half a round trip of one message"},
          Row{Benchmark::sendrecv, "one message each way at once, by MPI_Sendrecv"},
          Row{Benchmark::bw, "one way, a window of messages in flight"},
          Row{Benchmark::bibw, "both ways at once, a window of messages in flight"},
          Row{Benchmark::mr, "messages a second: a window in flight, one way, between all pairs"},
          Row{Benchmark::overlap,
              "share of a transfer that hides behind computing, without and with the progress "
              "thread"},
          Row{Benchmark::fresh,
              "first messages to buffers that no message used before, beside staging them all"}}) {
        const bool has_ways = row.benchmark != Benchmark::fresh;
        CLI::App* command = app.add_subcommand(name(row.benchmark), row.help);
        command
            ->add_option("placement", placements,
                         "buffers of rank 0 and of rank 1: D device, H host, M managed, P pinned "
                         "host (default D D)")
            ->expected(0, 2);
        command
            ->add_option("-m,--sizes", sizes,
                         "message sizes: 8,64K,4M or, doubling, MIN:MAX (default 1:4M; overlap "
                         "from 64K, mr to 64K, fresh 8,1K,16K,64K,256K,1M)")
            ->type_name("SIZES");
        command->add_flag("--pageable", pageable,
                          "host buffers are pageable: placement P then means H");
        if (has_ways) {
            command
                ->add_option("-i,--iterations", options.iterations,
                             "samples of each size (default: by size)")
                ->check(CLI::PositiveNumber);
            command
                ->add_option("-w,--window", options.window,
                             "messages in flight (default: by size, at most 64)")
                ->check(CLI::PositiveNumber);
        }
        command
            ->add_option("--gpus", options.gpus,
                         "device of rank 0 and of rank 1 (default: 0,1 if there are two)")
            ->delimiter(',');
        if (has_ways) {
            command
                ->add_option(
                    "--baseline", baseline,
                    "beside the library: staged (copy, send, copy), user-pipelined (by hand, "
                    "best block), all")
                ->check(CLI::IsMember({"staged", "user-pipelined", "all", "none"}));
            command->add_flag(
                "!--no-library", options.library,
                "only the baselines (for an MPI that knows no device memory and would crash)");
            command->add_flag("--floor", options.floors,
                              "beside the library: bare copies of the driver with a flag, no MPI");
        }
        command->add_flag(
            "--no-validation", no_validation,
            "do not check the data (every byte of every message is checked otherwise)");
        command->add_flag("--busy", options.busy,
                          "the second rank of each pair keeps kernels queued on its GPU");
        if (row.benchmark == Benchmark::mr)
            command->add_option("--pairs", options.pairs, "pairs of ranks (default 1)")
                ->check(CLI::Range(1, 512));
        if (row.benchmark == Benchmark::overlap)
            command
                ->add_option("--compute", options.compute,
                             "computing lasts so many times the transfer (default 2)")
                ->check(CLI::PositiveNumber);
        if (row.benchmark == Benchmark::fresh) {
            command
                ->add_option("-n,--buffers", options.buffers, "buffers on each side (default 1000)")
                ->check(CLI::PositiveNumber);
            command
                ->add_option("--uses", options.uses,
                             "messages to each buffer, each to a place of its own (default 1)")
                ->check(CLI::PositiveNumber);
        }
        command->add_option("--peers", options.peers,
                            "a folder with impi/, ompi/, ucx/: run them too, one table (start "
                            "gantry-bench without mpiexec)");
        command->add_option(
            "--rails", options.rails,
            "network devices with commas between them, as in GANTRY_RAILS: each "
            "alone and all together, one table (start gantry-bench without mpiexec)");
        command
            ->add_option("--rounds", options.rounds,
                         "with --peers, --rails, overlap and fresh: rounds of all runs (default 3)")
            ->check(CLI::PositiveNumber);
        command
            ->add_option("--patience", options.patience,
                         "with --peers: seconds until a run that gives no answer is ended and told "
                         "(default 30 times our own run, 60 at least)")
            ->check(CLI::PositiveNumber);
        command->add_flag("--json", options.json, "JSON instead of columns");
        command->callback([&options, benchmark = row.benchmark] { options.benchmark = benchmark; });
    }
    CLI::App* demo = app.add_subcommand(
        "demo", "4 MiB from device to device, verified, beside doing it by hand");
    demo->add_option("--gpus", options.gpus, "device of rank 0 and of rank 1")->delimiter(',');
    demo->callback([&options] { options.benchmark = Benchmark::demo; });

    // CLI11 would only say that a subcommand is required.
    const auto is_asked_for = [argv](CLI::App* command) { return command->check_name(argv[1]); };
    if (argc > 1 && app.get_subcommands(is_asked_for).empty() &&
        app.get_option_no_throw(argv[1]) == nullptr) {
        if (talk)
            fmt::print(stderr,
                       "gantry-bench: there is no benchmark '{}'; gantry-bench --help lists them\n",
                       argv[1]);
        finish(2);
    }
    try {
        app.parse(argc, argv);
        options.sizes = sizes.empty() ? default_sizes(options.benchmark) : sizes_of(sizes);
        for (std::size_t i = 0; i < placements.size(); ++i)
            options.placement[i] = placement_of(placements[i]);
        if (placements.size() == 1) options.placement[1] = options.placement[0];
        if (pageable) std::ranges::replace(options.placement, Placement::pinned, Placement::host);
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
        options.sizes = {4 * kMiB};
        options.staged = options.pipelined = true;
    }
    return options;
}

std::vector<std::string> arguments_of_a_run(const Options& options) {
    std::vector<std::string> words = words_of(options, options.sizes);
    if (!options.json) words.emplace_back("--json");
    return words;
}

std::string command_for(const Options& options, Bytes bytes) {
    return fmt::format("mpiexec -n {} gantry-bench {}", 2 * options.pairs,
                       fmt::join(words_of(options, {bytes}), " "));
}

}  // namespace gantry::bench
