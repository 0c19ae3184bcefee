// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <optional>

namespace gantry::mpiexec {
namespace {

constexpr int kMostRanks = 4096;

std::optional<double> seconds(const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !(value >= 0)) return std::nullopt;
    return value;
}

std::optional<int> rank_count(const std::string& text) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < 1 || value > kMostRanks)
        return std::nullopt;
    return value;
}

// Reads the arguments one after the other; the first mistake ends it.
class Parser {
  public:
    explicit Parser(const std::vector<std::string>& arguments) : arguments_(arguments) {}

    CommandLine parse() {
        while (line_.wish == Wish::run && at_ < arguments_.size())
            parse_app();
        if (line_.wish == Wish::run && line_.options.apps.empty())
            mistake("there is no program to run");
        return std::move(line_);
    }

  private:
    void parse_app() {
        App app;
        while (line_.wish == Wish::run && at_ < arguments_.size() &&
               arguments_[at_].starts_with('-')) {
            if (arguments_[at_] == "--") {
                ++at_;
                break;
            }
            parse_option(app);
        }
        while (at_ < arguments_.size() && arguments_[at_] != ":")
            app.command.push_back(arguments_[at_++]);
        if (line_.wish != Wish::run) return;
        if (app.command.empty()) return mistake("there is no program to run");
        line_.options.apps.push_back(std::move(app));
        if (at_ < arguments_.size()) {  // the ':'
            ++at_;
            if (at_ == arguments_.size()) mistake("there is no program behind the last ':'");
        }
    }

    void parse_option(App& app) {
        const std::string option = arguments_[at_++];
        if (option == "-h" || option == "-help" || option == "--help") {
            line_.wish = Wish::show_help;
        } else if (option == "-V" || option == "-version" || option == "--version") {
            line_.wish = Wish::show_version;
        } else if (option == "-n" || option == "-np" || option == "--np" || option == "-c") {
            const std::optional<int> count = rank_count(value(option));
            if (count)
                app.ranks = *count;
            else
                mistake(fmt::format("{} takes a number of ranks from 1 to {}", option, kMostRanks));
        } else if (option == "--label" || option == "-label" || option == "-l") {
            line_.options.label = true;
        } else if (option == "--timeout" || option == "-timeout") {
            const std::optional<double> limit = seconds(value(option));
            if (limit)
                line_.options.timeout_seconds = *limit;
            else
                mistake("--timeout takes a number of seconds");
        } else if (option == "--bind-to" || option == "-bind-to") {
            const std::string unit = value(option);
            line_.options.bind_to = bind_to(unit);
            if (!line_.options.bind_to)
                mistake(fmt::format("--bind-to takes share, core, numa, socket or none, not \"{}\"",
                                    unit));
        } else if (option == "--report-bindings" || option == "-report-bindings") {
            line_.options.report_bindings = true;
        } else if (option == "--hosts" || option == "-hosts" || option == "--host" ||
                   option == "-host" || option == "-H") {
            line_.options.hosts = value(option);
        } else if (option == "-f" || option == "--hostfile" || option == "-hostfile" ||
                   option == "-machinefile") {
            line_.options.host_file = value(option);
        } else if (option == "--launcher") {
            line_.options.launcher = value(option);
        } else if (option == "--show") {
            line_.options.show_command = true;
        } else if (option == "-wdir" || option == "--wdir" || option == "-wd") {
            app.folder = value(option);
        } else if (option == "-env" || option == "--env") {
            std::string name = value(option);
            app.variables.emplace_back(std::move(name), value(option));
        } else if (option == "-genv" || option == "--genv") {
            std::string name = value(option);
            line_.options.variables.emplace_back(std::move(name), value(option));
        } else if (option == "-x") {
            export_variable(value(option));
        } else if (option == "--oversubscribe" || option == "--allow-run-as-root") {
            // Both always hold here; scripts written for other launchers say them.
        } else {
            mistake(fmt::format("there is no option {}", option));
        }
    }

    // "-x NAME=VALUE", "-x NAME VALUE", or "-x NAME" for what the caller has anyway.
    void export_variable(const std::string& text) {
        const std::size_t equals = text.find('=');
        if (equals != std::string::npos) {
            line_.options.variables.emplace_back(text.substr(0, equals), text.substr(equals + 1));
            return;
        }
        if (std::getenv(text.c_str()) != nullptr) return;
        line_.options.variables.emplace_back(text, value("-x " + text));
    }

    std::string value(const std::string& option) {
        if (at_ < arguments_.size()) return arguments_[at_++];
        mistake(fmt::format("{} needs a value behind it", option));
        return {};
    }

    void mistake(std::string text) {
        if (line_.wish != Wish::run) return;
        line_.wish = Wish::explain_mistake;
        line_.mistake = std::move(text);
    }

    const std::vector<std::string>& arguments_;
    std::size_t at_ = 0;
    CommandLine line_;
};

}  // namespace

int Options::total_ranks() const {
    int total = 0;
    for (const App& app : apps)
        total += app.ranks;
    return total;
}

CommandLine parse(const std::vector<std::string>& arguments) {
    return Parser(arguments).parse();
}

const char* help_text() {
    return R"(Starts the ranks of an MPI program on this machine, or has a launcher start them on others.

  mpiexec [options] PROGRAM [ARGUMENTS...] [: [options] PROGRAM2 [ARGUMENTS...]]...

  -n N, -np N           how many ranks run PROGRAM (default 1); more than there are processors is fine
  --label, -l           begin every line of output with the rank that wrote it: "[3] ..."
  --timeout SECONDS     end the job when it runs longer; the exit code is then 124
  -env NAME VALUE       set an environment variable for this PROGRAM
  -genv NAME VALUE      set it for every PROGRAM; "-x NAME=VALUE" and "-x NAME VALUE" mean the same
  -wdir FOLDER          start PROGRAM in FOLDER
  --bind-to UNIT        which processors a rank may use. share (default): an even share of the cores, if there
                        are enough for all ranks; core: one core a rank; numa, socket: one of these; none
  --report-bindings     say so on standard error, a line a rank
  --hosts a,b:4         run on these hosts (with that many ranks each): hands over to a launcher that is
                        installed: srun (inside an allocation), prterun, mpiexec.hydra or orterun
  -f FILE               the same with hosts from a file, one a line: "a", "a:4" or "a slots=4"
  --launcher NAME       hand over to this one; --show prints its command line instead of running it
  --help, --version

Every rank sees PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS and LOCAL_RANK.
Standard input goes to rank 0. Output comes by whole lines.
A rank that dies, or exits without MPI_Finalize while others wait for it, ends the job; Ctrl-C is
passed on, and what has not ended 2 s later is killed.
The exit code is the first one that is not 0: a rank's own, the code of MPI_Abort, or 128 + signal.

  mpiexec -n 4 ./program input.dat
  mpiexec -n 1 ./master : -n 3 ./worker
  mpiexec -n 2 --label gdb -batch -ex run -ex backtrace --args ./program
)";
}

}  // namespace gantry::mpiexec
