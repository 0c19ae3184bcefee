// SPDX-License-Identifier: BSD-3-Clause
//
// gantry-world: what `gantry reproduce` and `gantry scale` start. It holds the simulated world, which the
// library and its tools do not.
#include "choices.hpp"
#include "figure.hpp"
#include "scale.hpp"
#include "tools/command_line.hpp"
#include "world/harness/published.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <malloc.h>

namespace gantry::reproduce {
namespace {

// What bench/published_network compares real processes of two namespaces with.
int print_placements() {
    const auto microseconds = [](Nanoseconds time) { return static_cast<double>(time) / 1000; };
    fmt::print("{{\n");
    for (const world::PlacedTimes& times : world::measure_placements())
        fmt::print(
            "  \"{}\": {{\"staged\": {}, \"user-pipelined\": {}, \"block\": {}, \"Gantry\": "
            "{}}},\n",
            times.placement, microseconds(times.copy_and_send), microseconds(times.user.time),
            times.user.block, microseconds(times.gantry));
    fmt::print("  \"ideal\": {}\n}}\n",
               microseconds(world::measure_published(world::SharedPinned::with).ideal));
    return 0;
}

struct ReproduceOptions {
    std::vector<int> rows;
    std::string html;
    bool processes = true, json = false;
    int scale = 16;
};

int reproduce(const ReproduceOptions& options) {
    Evidence evidence;
    add_world_figures(evidence, options.rows);
    if (options.processes)
        add_process_figures(evidence,
                            std::filesystem::read_symlink("/proc/self/exe").parent_path().string(),
                            options.scale);
    else
        for (Figure& figure : evidence.figures)
            figure.processes.reason = figure.gpu.reason = "not asked for";
    if (options.json)
        fmt::print("{}\n", json_of(evidence));
    else
        print_table(evidence);
    if (!options.html.empty()) {
        std::ofstream out(options.html);
        out << page_of(evidence);
        out.close();
        if (!out) {
            fmt::print(stderr, "gantry reproduce: writing {} failed\n", options.html);
            return 2;
        }
    }
    return std::ranges::any_of(
               evidence.figures,
               [](const Figure& figure) { return figure.verdict() == Verdict::missed; })
               ? 1
               : 0;
}

}  // namespace
}  // namespace gantry::reproduce

int main(int argc, char** argv) {
    using namespace gantry::reproduce;
    // The pools of a thousand ranks take memory where somebody writes, not where calloc clears what it has
    // had before.
    mallopt(M_MMAP_THRESHOLD, gantry::kMiB);
    CLI::App app(
        "The simulated world as a program: published figures, and the applications at scale",
        "gantry");
    app.require_subcommand(1);
    ReproduceOptions options;
    CLI::App* reproduce_command =
        app.add_subcommand("reproduce",
                           "every published figure of the original system beside ours; exit status "
                           "1 when one is missed");
    reproduce_command->add_option("--rows", options.rows, "only these rows (1 to 18)")
        ->delimiter(',')
        ->check(CLI::Range(1, 18));
    reproduce_command->add_option("--html", options.html, "write one page with charts")
        ->type_name("FILE");
    reproduce_command->add_flag_callback(
        "--no-processes", [&options] { options.processes = false; },
        "only the world: no jobs on the simulated or a real GPU");
    reproduce_command
        ->add_option(
            "--scale", options.scale,
            "how much slower than its machine the simulated GPU is, so that this one keeps up")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    reproduce_command->add_flag("--json", options.json, "as JSON");
    CLI::App* placements_command =
        app.add_subcommand("placements", "what bench/published_network reads");
    ScaleOptions scale_options;
    scale_options.ranks = {8, 16, 32, 64};
    CLI::App* scale_command = app.add_subcommand(
        "scale", "steps of lbm and awp by every exchange, and collectives, on described clusters");
    scale_command
        ->add_option("--ranks", scale_options.ranks,
                     "how many ranks, one run for each (powers of two, 8 to 1024)")
        ->delimiter(',')
        ->check([](const std::string& text) {
            const int ranks = std::atoi(text.c_str());
            return ranks >= 8 && ranks <= 1024 && (ranks & (ranks - 1)) == 0
                       ? std::string()
                       : text + " is not a power of two from 8 to 1024";
        })
        ->capture_default_str();
    std::vector<std::string> clusters;
    for (const auto& cluster : gantry::world::clusters())
        clusters.emplace_back(cluster.name);
    scale_command
        ->add_option("--cluster", scale_options.cluster,
                     "c2050-qdr, m2070-qdr or h200-ndr; all by default")
        ->check(CLI::IsMember(clusters));
    scale_command
        ->add_option("--only", scale_options.only,
                     "LBM-3D, LBM-1D, AWP or collectives; all by default")
        ->delimiter(',')
        ->check(CLI::IsMember({"LBM-3D", "LBM-1D", "AWP", "collectives"}));
    scale_command->add_option("--html", scale_options.picture, "write the charts")
        ->type_name("FILE");
    scale_command->add_flag("--json", scale_options.json, "as JSON");
    ChoicesOptions choices_options;
    choices_options.sizes = {8, 4 * gantry::kKiB, 64 * gantry::kKiB, gantry::kMiB,
                             16 * gantry::kMiB};
    bool by_choice = false;
    scale_command->add_flag("--choices", by_choice,
                            "instead: collectives as the planner chooses them, beside each other "
                            "algorithm fixed in turn; what takes 1.25 times the best is marked");
    scale_command
        ->add_option("--collectives", choices_options.operations,
                     "of --choices: these alone (bcast,allreduce ...)")
        ->delimiter(',')
        ->check(CLI::IsMember(gantry::reproduce::collectives_of_choices()));
    scale_command
        ->add_option("--sizes", choices_options.sizes,
                     "of --choices: bytes of a vector, or of all blocks of a rank together")
        ->delimiter(',')
        ->check(CLI::Range(gantry::Bytes{1}, gantry::kGiB))
        ->transform(CLI::AsSizeValue(false));
    scale_command->add_flag("--host", choices_options.host, "of --choices: host memory");
    scale_command->add_flag("--only-chosen", choices_options.only_chosen,
                            "of --choices: without the other algorithms");
    app.failure_message(gantry::command_line::mistake);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& end) {
        return gantry::command_line::exit_code(app, end);
    }
    if (*placements_command) return print_placements();
    if (by_choice) {
        choices_options.cluster = scale_options.cluster;
        choices_options.ranks = scale_options.ranks;
        choices_options.json = scale_options.json;
        return choices(choices_options);
    }
    if (*scale_command) return scale(scale_options);
    return reproduce(options);
}
