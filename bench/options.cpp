// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include "command_line.hpp"
#include "sizes.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::bench {
namespace {

std::vector<Bytes> default_sizes(Benchmark benchmark) {
    switch (benchmark) {
        case Benchmark::overlap: return doubling(64 * kKiB, 4 * kMiB);
        case Benchmark::mr: return doubling(1, 64 * kKiB);
        case Benchmark::fresh: return sizes_of("8,1K,16K,64K,256K,1M");
        case Benchmark::accumulate: return doubling(kItemBytes, 4 * kMiB);
        case Benchmark::fetch_op:
        case Benchmark::cas: return {kItemBytes};
        default: return doubling(1, 4 * kMiB);
    }
}

Placement placement_of(const std::string& text) {
    for (Placement placement : {Placement::device, Placement::host, Placement::managed,
                                Placement::pinned, Placement::openacc})
        if (text.size() == 1 && std::toupper(text[0]) == static_cast<char>(placement))
            return placement;
    throw CLI::ValidationError(
        "placement",
        "'" + text +
            "' is none of D (device), H (host), M (managed), P (pinned host), A (OpenACC's)");
}

// MPI allocates host memory; other memory is the program's.
WindowKind default_window(const Options& options) {
    const bool host = options.placement[1] == Placement::host &&
                      (!goes_both_ways(options) || options.placement[0] == Placement::host);
    return host ? WindowKind::allocate : WindowKind::create;
}

// The value that has this name; CLI11 has checked that one has.
template <class Value>
Value named(const std::string& text, std::initializer_list<Value> values) {
    return *std::ranges::find_if(values, [&text](Value value) { return text == name(value); });
}

void check_rows(const Options& options) {
    for (const Bytes bytes : options.sizes)
        if (bytes == 0 || bytes % options.rows.block != 0)
            throw CLI::ValidationError(
                "--layout", fmt::format("messages of {} bytes are not of whole rows of {} bytes",
                                        bytes, options.rows.block));
    if (options.forms || options.floors)
        throw CLI::ValidationError("--layout", "rows have no --forms and no --floor");
    const bool by_hand = options.staged || options.pipelined || !options.library;
    if (by_hand && !(is_device(options.placement[0]) && is_device(options.placement[1])))
        throw CLI::ValidationError(
            "--layout",
            "the baselines copy rows between device and host: both buffers must be in "
            "device memory (D or A), or take --baseline none");
}

void check_one_sided(const Options& options) {
    const bool one_item =
        options.benchmark == Benchmark::fetch_op || options.benchmark == Benchmark::cas;
    const bool bandwidth = options.measure == Measure::bw || options.measure == Measure::bibw;
    if (one_item && bandwidth)
        throw CLI::ValidationError("--measure", "one item has no bandwidth: take latency or rate");
    for (const Bytes bytes : options.sizes) {
        if (one_item && bytes != kItemBytes)
            throw CLI::ValidationError("-m",
                                       fmt::format("{} is of one item of 8 bytes, not of {} bytes",
                                                   name(options.benchmark), bytes));
        if (bytes == 0 || (options.benchmark == Benchmark::accumulate && bytes % kItemBytes != 0))
            throw CLI::ValidationError(
                "-m", fmt::format("{} of {} bytes: {}", name(options.benchmark), bytes,
                                  bytes == 0 ? "there is nothing to time"
                                             : "it adds doubles, of 8 bytes each"));
    }
    if (options.staged && (options.measure != Measure::latency || options.sync != Sync::fence))
        throw CLI::ValidationError("--baseline",
                                   "staged is one operation between two fences, in which both "
                                   "ranks take part: add --sync fence, and no --measure");
    if (options.staged && !(is_device(options.placement[0]) && is_device(options.placement[1])))
        throw CLI::ValidationError("--baseline",
                                   "staged copies between device and host on both ranks: both "
                                   "buffers must be in device memory (D or A)");
    const bool by_mpi =
        options.window_kind == WindowKind::allocate || options.window_kind == WindowKind::shared;
    if (by_mpi && default_window(options) != WindowKind::allocate)
        throw CLI::ValidationError(
            "--window", fmt::format("{} is host memory that MPI allocates: the target's placement "
                                    "must be H; for the others take create or dynamic",
                                    name(options.window_kind)));
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
    if (options.rows.any())
        add("--layout", fmt::format("{}:{}", options.rows.block, options.rows.stride));
    if (!gpus.empty()) add("--gpus", gpus);
    if (options.staged || options.pipelined)
        add("--baseline", options.staged && options.pipelined ? "all"
                          : options.staged                    ? "staged"
                                                              : "user-pipelined");
    const Options by_default;
    if (is_one_sided(options.benchmark)) {
        if (options.measure != by_default.measure) add("--measure", name(options.measure));
        if (options.sync != by_default.sync) add("--sync", name(options.sync));
        if (options.window_kind != default_window(options))
            add("--window", name(options.window_kind));
    }
    if (!options.library) add("--no-library");
    if (options.forms) add("--forms");
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

Options parse(int argc, char** argv, bool talk) {
    Options options;
    std::vector<std::string> placements;
    std::string sizes, baseline, measure, sync, window_kind, rows;
    bool no_validation = false, pageable = false;
    CLI::App app(
        "gantry-bench: messages and one-sided operations between two ranks, host and device "
        "memory",
        "gantry-bench");
    app.footer(
        "Collective operations of any number of ranks have options of their own: alltoall --help; "
        "so have those with neighbours (neighbor_alltoall), fan_in, fan_out and pairs (messages "
        "of all ranks at once), and files: io --help. startup: what MPI_Init and sessions take. "
        "plot FILE... draws what was printed with --json.");
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
              "first messages to buffers that no message used before, beside staging them all"},
          Row{Benchmark::put, "MPI_Put: from rank 0 (the origin) into rank 1 (the target)"},
          Row{Benchmark::get, "MPI_Get: by rank 0 (the origin) from rank 1 (the target)"},
          Row{Benchmark::accumulate, "MPI_Accumulate: doubles are added at the target"},
          Row{Benchmark::fetch_op, "MPI_Fetch_and_op: one item of 8 bytes"},
          Row{Benchmark::cas, "MPI_Compare_and_swap: one item of 8 bytes"}}) {
        const bool one_sided = is_one_sided(row.benchmark);
        const bool has_ways = row.benchmark != Benchmark::fresh;
        CLI::App* command = app.add_subcommand(name(row.benchmark), row.help);
        command
            ->add_option("placement", placements,
                         "buffers of rank 0 and of rank 1: D device, A device by OpenACC, H host, "
                         "M managed, P pinned "
                         "host (default D D)")
            ->expected(0, 2);
        command
            ->add_option("-m,--sizes", sizes,
                         "message sizes: 8,64K,4M or, doubling, MIN:MAX (default 1:4M; overlap "
                         "from 64K, mr to 64K, fresh 8,1K,16K,64K,256K,1M, accumulate from 8, "
                         "fetch_op and cas 8)")
            ->type_name("SIZES");
        command->add_flag("--pageable", pageable,
                          "host buffers are pageable: placement P then means H");
        if (has_ways) {
            command
                ->add_option("-i,--iterations", options.iterations,
                             "samples of each size (default: by size)")
                ->check(command_line::above_zero());
            command
                ->add_option(one_sided ? "-w,--operations" : "-w,--window", options.window,
                             one_sided ? "operations before one synchronisation, of bw, bibw and "
                                         "rate (default: by size, at most 64)"
                                       : "messages in flight (default: by size, at most 64)")
                ->check(command_line::above_zero());
        }
        if (has_ways && !one_sided && row.benchmark != Benchmark::overlap)
            command
                ->add_option("--layout", rows,
                             "messages are rows of BLOCK bytes, STRIDE apart, sent with a vector "
                             "datatype; what lies between them is checked, too")
                ->type_name("BLOCK:STRIDE");
        command
            ->add_option("--gpus", options.gpus,
                         "device of rank 0 and of rank 1 (default: 0,1 if there are two)")
            ->delimiter(',');
        if (one_sided) {
            command
                ->add_option("--measure", measure,
                             "latency: one operation and its synchronisation; bw: a window of "
                             "operations, then one synchronisation; bibw: both ranks at once; "
                             "rate: operations a second (default latency)")
                ->check(CLI::IsMember({"latency", "bw", "bibw", "rate"}));
            command
                ->add_option("--sync", sync,
                             "flush in an epoch of MPI_Win_lock_all, fence, pscw (post, start, "
                             "complete, wait), lock (and unlock) (default flush)")
                ->check(CLI::IsMember({"flush", "fence", "pscw", "lock"}));
            command
                ->add_option("--window", window_kind,
                             "made by MPI_Win_allocate, _create, _create_dynamic or "
                             "_allocate_shared (default allocate for a target in H, else create)")
                ->check(CLI::IsMember({"allocate", "create", "dynamic", "shared"}));
            if (row.benchmark == Benchmark::put || row.benchmark == Benchmark::get)
                command
                    ->add_option("--baseline", baseline,
                                 "beside the library: staged (copy, put or get between fences of a "
                                 "window of host memory, copy)")
                    ->check(CLI::IsMember({"staged", "none"}));
            command->add_flag("--floor", options.floors,
                              "beside the library: the processor's copy, or the driver's, into "
                              "memory that is mapped, no MPI");
        }
        if (has_ways && !one_sided) {
            command
                ->add_option(
                    "--baseline", baseline,
                    "beside the library: staged (copy, send, copy), user-pipelined (by hand, "
                    "best block), all")
                ->check(CLI::IsMember({"staged", "user-pipelined", "all", "none"}));
            command->add_flag_callback(
                "--no-library", [&options] { options.library = false; },
                "only the baselines (for an MPI that knows no device memory and would crash)");
            command->add_flag(
                "--forms", options.forms,
                "beside the library: persistent messages, and partitioned ones in 8 parts "
                "(requests made once, started each time)");
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
                ->check(command_line::above_zero());
        if (row.benchmark == Benchmark::fresh) {
            command
                ->add_option("-n,--buffers", options.buffers, "buffers on each side (default 1000)")
                ->check(command_line::above_zero());
            command
                ->add_option("--uses", options.uses,
                             "messages to each buffer, each to a place of its own (default 1)")
                ->check(command_line::above_zero());
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
            ->check(command_line::above_zero());
        command
            ->add_option("--patience", options.patience,
                         "with --peers: seconds until a run that gives no answer is ended and told "
                         "(default 30 times our own run, 60 at least)")
            ->check(command_line::above_zero());
        command->add_flag("--json", options.json, "JSON instead of columns");
        command->callback([&options, benchmark = row.benchmark] { options.benchmark = benchmark; });
    }
    CLI::App* demo = app.add_subcommand(
        "demo", "4 MiB from device to device, verified, beside doing it by hand");
    demo->add_option("--gpus", options.gpus, "device of rank 0 and of rank 1")->delimiter(',');
    demo->callback([&options] { options.benchmark = Benchmark::demo; });

    // CLI11 would only say that a subcommand is required.
    const auto is_asked_for = [argv](CLI::App* command) { return command->check_name(argv[1]); };
    const std::string asked = argc > 1 ? argv[1] : "";
    if (asked.empty() ||
        (app.get_subcommands(is_asked_for).empty() && app.get_option_no_throw(asked) == nullptr)) {
        if (talk)
            fmt::print(stderr, "gantry-bench: {} gantry-bench --help lists them\n",
                       asked.empty() ? std::string("which benchmark?")
                                     : fmt::format("there is no benchmark '{}';", asked));
        finish(2);
    }
    read_command_line(app, argc, argv, talk, [&] {
        if (!rows.empty()) options.rows = rows_of(rows);
        options.staged = baseline == "staged" || baseline == "all";
        options.pipelined = baseline == "user-pipelined" || baseline == "all";
        options.sizes = !sizes.empty()       ? sizes_of(sizes)
                        : options.rows.any() ? doubling(options.rows.block, 4 * kMiB)
                                             : default_sizes(options.benchmark);
        for (std::size_t i = 0; i < placements.size(); ++i)
            options.placement[i] = placement_of(placements[i]);
        if (placements.size() == 1) options.placement[1] = options.placement[0];
        if (pageable) std::ranges::replace(options.placement, Placement::pinned, Placement::host);
        if (options.rows.any()) check_rows(options);
        if (is_one_sided(options.benchmark)) {
            using enum Measure;
            using enum Sync;
            using enum WindowKind;
            if (!measure.empty()) options.measure = named(measure, {latency, bw, bibw, rate});
            if (!sync.empty()) options.sync = named(sync, {flush, fence, pscw, lock});
            options.window_kind = window_kind.empty()
                                      ? default_window(options)
                                      : named(window_kind, {allocate, create, dynamic, shared});
            check_one_sided(options);
        }
    });
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
