// SPDX-License-Identifier: BSD-3-Clause
//
// gantry info | explain COMMAND... | trace COMMAND... | doctor | tune | env | reproduce | scale: what is set,
// which path messages took and why, what ranks did when, whether this machine is ready, what its operations
// cost, how other MPIs' programs run, and what is claimed, shown again.
#include "answer.hpp"
#include "commands.hpp"
#include "tools/command_line.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace {

// The first word before the command of explain or trace that is an option, but none of theirs; null: none.
// CLI11 would hand it to the command.
const char* unknown_option(const CLI::App& app, int argc, char** argv) {
    for (int i = 2; i < argc && argv[i][0] == '-' && std::string_view(argv[i]) != "--"; ++i) {
        const std::string word = argv[i];
        const bool is_long = word.starts_with("--");
        const std::string name = is_long ? word.substr(0, word.find('=')) : word.substr(0, 2);
        const CLI::Option* option = app.get_option_no_throw(name);
        if (option == nullptr) return argv[i];
        if (name == word && option->get_items_expected_max() > 0) ++i;  // its value
    }
    return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
    using namespace gantry::tool;
    CLI::App app("Gantry " GANTRY_VERSION ": an MPI library for GPUs", "gantry");
    app.failure_message(gantry::command_line::mistake);
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
    explain_command
        ->add_option("--folder", explain_options.folder,
                     "collect the ranks' records here (made where it is missing; all machines of "
                     "the job must see it), and keep them")
        ->type_name("FOLDER");
    explain_command
        ->add_option("command", explain_options.command, "for example: mpiexec -n 2 ./program")
        ->required();
    explain_command->positionals_at_end();
    explain_command->prefix_command();

    TraceOptions trace_options;
    CLI::App* trace_command = app.add_subcommand(
        "trace", "run a command and write what its ranks did when, for Perfetto or Chrome");
    trace_command->add_option("-o,--output", trace_options.output, "where to (default trace.json)")
        ->type_name("FILE");
    trace_command
        ->add_option("--folder", trace_options.folder,
                     "collect the ranks' timelines here (made where it is missing; all machines of "
                     "the job must see it), and keep them; without a command: put together what "
                     "lies there")
        ->type_name("FOLDER");
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
    tune_command->add_option("--gpu", tune_options.gpu, "which device, from 0 (default 0)")
        ->type_name("NUMBER");
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
    const std::string asked = argc > 1 ? argv[1] : "";
    if (asked.empty() ||
        (app.get_subcommands(is_asked_for).empty() && app.get_option_no_throw(asked) == nullptr)) {
        fmt::print(stderr, "gantry: {} gantry --help lists them\n",
                   asked.empty() ? std::string("which command?")
                                 : fmt::format("there is no command '{}';", asked));
        return 2;
    }
    for (const CLI::App* command : {explain_command, trace_command})
        if (command->check_name(asked))
            if (const char* word = unknown_option(*command, argc, argv)) {
                fmt::print(stderr, "gantry {0}: there is no option {1}. See gantry {0} --help\n",
                           asked, word);
                return 2;
            }
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& end) {
        return gantry::command_line::exit_code(app, end);
    }
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
