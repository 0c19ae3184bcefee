// SPDX-License-Identifier: BSD-3-Clause
#include "../../tools/command_line.hpp"
#include "application.hpp"
#include "mistake.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>

namespace gantry::apps {

void add_common_options(CLI::App& command, CommonOptions& options) {
    command.add_option("--steps", options.steps, "time steps to compute")->capture_default_str();
    command
        .add_option("--decomposition", options.decomposition,
                    "how the cells are shared out: 1d, 2d, 3d, or ranks along each axis: 2x1x4")
        ->capture_default_str();
    command
        .add_option(
            "--exchange", options.exchanges,
            "how halos are exchanged, one or more with commas between: copies, staged, pipelined, "
            "packed, datatypes, neighbours, fence, pscw, persistent, partitioned, or all for all "
            "of "
            "these; openacc: packed in memory of OpenACC, where the compiler knew that. "
            "Several run one after another and must give the same bits (apps/README.md)")
        ->delimiter(',')
        ->capture_default_str();
    command
        .add_option(
            "--memory", options.memory,
            "where fields lie and who computes: host, device, or auto (a GPU if there is one)")
        ->check(CLI::IsMember({"auto", "host", "device"}))
        ->capture_default_str();
    command.add_flag("--overlap", options.overlap,
                     "compute inner cells while the outer ones' halos travel");
    command
        .add_option(
            "--allocation", options.allocation,
            "slab: all fields in one allocation; separate: each in its own, so datatypes have "
            "absolute addresses")
        ->check(CLI::IsMember({"slab", "separate"}))
        ->capture_default_str();
    command
        .add_option("--chunk", options.chunk_bytes,
                    "bytes of a chunk of --exchange pipelined, as in 256K")
        ->transform(CLI::AsSizeValue(false))
        ->check(command_line::above_zero())
        ->capture_default_str();
    command.add_option("--warm-up", options.warm_up,
                       "steps that are computed, but not timed (default: a tenth)");
    command.add_option("--report", options.report,
                       "steps between lines of progress; 0: none (default: a tenth)");
    command.add_option("--checkpoint", options.checkpoint,
                       "file that the state is written to after the last step");
    command.add_option("--checkpoint-every", options.checkpoint_every,
                       "also write it every so many steps");
    command.add_option(
        "--restart", options.restart,
        "go on from this checkpoint, on any number of ranks; --steps counts from there");
    command.add_option("--picture", options.picture, "PNG file of a slice of the field at the end");
    command.add_option("--json", options.json, "file of the table, as JSON");
}

void check_folder_of(const char* option, const std::string& file) {
    if (file.empty()) return;
    const std::filesystem::path folder = std::filesystem::path(file).parent_path();
    int rank = 0, there = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    std::error_code unknown;
    if (rank == 0 && !folder.empty()) there = std::filesystem::is_directory(folder, unknown);
    MPI_Bcast(&there, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!there)
        throw Mistake(std::string(option) + " " + file + ": there is no folder " + folder.string());
}

void complete(CommonOptions& options) {
    check_folder_of("--checkpoint", options.checkpoint);
    check_folder_of("--picture", options.picture);
    check_folder_of("--json", options.json);
    if (options.steps < 0) throw Mistake("--steps must be 0 or more");
    if (options.warm_up < 0) options.warm_up = options.steps / 10;
    if (options.warm_up > options.steps) throw Mistake("--warm-up has more steps than --steps");
    if (options.report < 0) options.report = std::max<Whole>(options.steps / 10, 1);
    if (options.checkpoint_every > 0 && options.checkpoint.empty())
        throw Mistake("--checkpoint-every needs --checkpoint FILE");
    std::vector<std::string> names;
    for (const std::string& words : options.exchanges) {
        if (words != "all") {
            names.push_back(exchange_name(words));
            continue;
        }
        for (const std::string& name : exchange_names())
            if (options.allocation == "slab" || !needs_window(name)) names.push_back(name);
    }
    options.exchanges = names;
    for (const std::string& name : names)
        if (options.allocation != "slab" && needs_window(name))
            throw Mistake("--exchange " + name + " needs --allocation slab: a window is over one");
}

Memory memory_named(const std::string& words) {
    std::string why_not;
    if (words == "auto") return driver().present(&why_not) ? Memory::device : Memory::host;
    return words == "host" ? Memory::host : Memory::device;
}

int number_on_node() {
    MPI_Comm node;
    int number = 0;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &number);
    MPI_Comm_free(&node);
    return number;
}

}  // namespace gantry::apps
