// SPDX-License-Identifier: BSD-3-Clause
//
// gantry info | explain COMMAND... | trace COMMAND... | doctor | tune | env | reproduce | scale: what is set,
// which path messages took and why, what ranks did when, whether this machine is ready, what its operations
// cost, how other MPIs' programs run, and what is claimed, shown again.
#include "answer.hpp"
#include "commands.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

int main(int argc, char** argv) {
    using namespace gantry::tool;
    CLI::App app("Gantry " GANTRY_VERSION ": an MPI library for GPUs");
    app.require_subcommand(1);
    app.set_version_flag("--version", GANTRY_VERSION);

    bool json = false, markdown = false;
    std::string check_file;
    CLI::App* info_command = app.add_subcommand(
        "info", "every parameter: its value, where that comes from, and what it means");
    info_command->add_flag("--json", json, "as JSON");
    info_command->add_flag("--markdown", markdown, "as the page docs/tuning.md");
    info_command
        ->add_option("--check", check_file, "with --markdown: fail when FILE is not this page")
        ->type_name("FILE");

    ExplainOptions explain_options;
    CLI::App* explain_command = app.add_subcommand(
        "explain", "run a command and print which path its messages took, and why");
    explain_command->add_flag("--json", json, "as JSON");
    explain_command->add_flag("--all", explain_options.all,
                              "what senders recorded too, not only receivers (who see both ends)");
    explain_command->add_option(
        "--folder", explain_options.folder,
        "collect the ranks' records here (shared by all machines of the job)");
    explain_command
        ->add_option("command", explain_options.command, "for example: mpiexec -n 2 ./program")
        ->required();
    explain_command->positionals_at_end();
    explain_command->prefix_command();

    TraceOptions trace_options;
    CLI::App* trace_command = app.add_subcommand(
        "trace", "run a command and write what its ranks did when, for Perfetto or Chrome");
    trace_command->add_option("-o,--output", trace_options.output, "where to (trace.json)")
        ->type_name("FILE");
    trace_command->add_option(
        "--folder", trace_options.folder,
        "collect the ranks' timelines here (shared by all machines of the job), and keep them; "
        "without a command: put together what lies there");
    trace_command->add_option("command", trace_options.command,
                              "for example: mpiexec -n 2 ./program");
    trace_command->positionals_at_end();
    trace_command->prefix_command();

    CLI::App* doctor_command = app.add_subcommand(
        "doctor", "look at this machine: driver, devices, sharing, memory, launcher");
    doctor_command->add_flag("--json", json, "as JSON");

    TuneOptions tune_options;
    CLI::App* tune_command = app.add_subcommand(
        "tune", "measure this machine's devices (under a minute) and use what was measured");
    tune_command->add_option("--gpu", tune_options.gpu, "which device")->type_name("NUMBER");
    tune_command
        ->add_option("--output", tune_options.output,
                     "write FILE (and a picture beside it) instead of "
                     "$XDG_CONFIG_HOME/gantry/machines/NAME.json")
        ->type_name("FILE");

    std::string other_mpi;
    CLI::App* env_command = app.add_subcommand(
        "env", "exports for a shell in which programs built for another MPI are to run on Gantry");
    env_command->add_option("--as", other_mpi, "the MPI they are built for")
        ->required()
        ->check(CLI::IsMember({"mpich", "openmpi"}))
        ->type_name("mpich|openmpi");

    // Their options are gantry-world's own.
    CLI::App* reproduce_command = app.add_subcommand(
        "reproduce", "every published figure of the original system beside ours, as ratios");
    CLI::App* scale_command = app.add_subcommand(
        "scale", "the applications and collectives on described clusters of 8 to 1024 ranks");
    for (CLI::App* each : {reproduce_command, scale_command}) {
        each->set_help_flag();
        each->prefix_command();
    }

    // CLI11 would only say that a subcommand is required.
    const auto is_asked_for = [argv](CLI::App* command) { return command->check_name(argv[1]); };
    if (argc > 1 && app.get_subcommands(is_asked_for).empty() &&
        app.get_option_no_throw(argv[1]) == nullptr) {
        fmt::print(stderr, "gantry: there is no command '{}'; gantry --help lists them\n", argv[1]);
        return 2;
    }
    CLI11_PARSE(app, argc, argv);
    const Format format = json ? Format::json : markdown ? Format::markdown : Format::text;
    if (*info_command) return with_all_written(info(format, check_file));
    if (*doctor_command) return with_all_written(doctor(format));
    if (*env_command) return with_all_written(env(other_mpi));
    if (*tune_command) return with_all_written(tune(tune_options));
    if (*reproduce_command || *scale_command)
        return world(std::vector<std::string>(argv + 1, argv + argc));
    if (*trace_command) {
        for (const std::string& word : trace_command->remaining())
            trace_options.command.push_back(word);
        if (trace_options.command.empty() && trace_options.folder.empty()) {
            fmt::print(stderr,
                       "gantry trace: which command? For example: gantry trace mpiexec -n 2 "
                       "./program\n");
            return 2;
        }
        return with_all_written(trace(trace_options));
    }
    for (const std::string& word : explain_command->remaining())
        explain_options.command.push_back(word);
    explain_options.format = format;
    return with_all_written(explain(explain_options));
}
