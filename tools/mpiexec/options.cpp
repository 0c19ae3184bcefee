// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

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
        if (line_.wish == Wish::run && line_.options.apps.empty() && line_.options.serve < 0)
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
        if (line_.wish != Wish::run || line_.options.serve >= 0) return;
        if (app.command.empty() && !app.variables.empty())
            return mistake("there is no program to run; -env takes two words, NAME and VALUE");
        if (app.command.empty()) return mistake("there is no program to run");
        line_.options.apps.push_back(std::move(app));
        if (at_ < arguments_.size()) {  // the ':'
            ++at_;
            if (at_ == arguments_.size()) mistake("there is no program behind the last ':'");
        }
    }

    void parse_option(App& app) {
        std::string option = arguments_[at_++];
        // "--bind-to=none" is "--bind-to none".
        if (const std::size_t equals = option.find('=');
            option.starts_with("--") && equals != std::string::npos) {
            joined_ = option.substr(equals + 1);
            option.resize(equals);
        }
        const Option* known = find(option);
        if (known == nullptr) return mistake(fmt::format("there is no option {}", option));
        (this->*known->take)(app, option);
        if (joined_) mistake(fmt::format("{} takes no value, but has \"{}\"", option, *joined_));
    }

    // --- one function for each option

    using Take = void (Parser::*)(App& app, const std::string& option);
    struct Option {
        std::string_view names;  // between blanks
        Take take;
    };
    static const Option* find(std::string_view option);

    void show_help(App&, const std::string&) { line_.wish = Wish::show_help; }
    void show_version(App&, const std::string&) { line_.wish = Wish::show_version; }
    void ranks(App& app, const std::string& option) {
        app.ranks_given = true;
        app.ranks = count(option, "ranks");
    }
    void label(App&, const std::string&) { line_.options.label = true; }
    // By the library alone, in a program that no launcher started: the number of an open socket.
    void serve(App&, const std::string& option) {
        line_.options.serve = count(option, "the socket");
        line_.options.input_rank = -1;
    }
    void quiet(App&, const std::string&) { line_.options.quiet = true; }
    void timeout(App&, const std::string& option) {
        const std::string text = value(option);
        const std::optional<double> limit = seconds(text);
        if (limit)
            line_.options.timeout_seconds = *limit;
        else
            mistake(
                fmt::format("--timeout takes a number of seconds (0: no limit), not \"{}\"", text));
    }
    void keep_going(App&, const std::string&) { line_.options.keep_going = true; }
    // Open MPI's word for it.
    void with_ft(App&, const std::string& option) {
        const std::string way = value(option);
        line_.options.keep_going = way == "ulfm" || way == "mpi" || way == "true" || way == "1";
    }
    void bind(App&, const std::string& option) {
        const std::string unit = value(option);
        line_.options.bind_to = bind_to(unit);
        if (!line_.options.bind_to)
            mistake(
                fmt::format("--bind-to takes share, core, numa, socket or none, not \"{}\"", unit));
    }
    void gpus_per_rank(App&, const std::string& option) {
        line_.options.gpus.per_rank = count(option, "GPUs");
    }
    void bind_gpus(App&, const std::string& option) {
        const std::string text = value(option);
        const std::optional<GpuWish> wish = gpu_bind(text);
        if (!wish)
            return mistake(fmt::format(
                "--gpu-bind takes closest, none or numbers like 0,1, not \"{}\"", text));
        line_.options.gpus.bind = wish->bind;
        line_.options.gpus.listed = wish->listed;
    }
    void report_bindings(App&, const std::string&) { line_.options.report_bindings = true; }
    void hosts(App&, const std::string& option) {
        line_.options.hosts = value(option);
        if (line_.options.hosts.starts_with('-'))
            mistake(fmt::format("{} takes hosts such as a,b:4, not \"{}\"", option,
                                line_.options.hosts));
    }
    void host_file(App&, const std::string& option) { line_.options.host_file = value(option); }
    void launcher(App&, const std::string& option) { line_.options.launcher = value(option); }
    void show_command(App&, const std::string&) { line_.options.show_command = true; }
    void folder(App& app, const std::string& option) { app.folder = value(option); }
    void variable(App& app, const std::string& option) {
        std::string name = value(option);
        app.variables.emplace_back(std::move(name), value(option));
    }
    void variable_for_all(App&, const std::string& option) {
        std::string name = value(option);
        line_.options.variables.emplace_back(std::move(name), value(option));
    }
    void exported(App&, const std::string& option) { export_variable(value(option)); }
    // Names of variables that the ranks must have.
    void listed_variables(App&, const std::string& option) {
        std::istringstream names(value(option));
        for (std::string name; std::getline(names, name, ',');)
            pass_on(name);
    }
    void ranks_per_host(App&, const std::string& option) {
        line_.options.ranks_per_host = count(option, "ranks");
    }
    // Open MPI's: without -n as many ranks as that on each host.
    void ranks_of_each_host(App& app, const std::string& option) {
        line_.options.ranks_per_host = count(option, "ranks");
        app.ranks_of_each_host = line_.options.ranks_per_host;
        if (!app.ranks_given) app.ranks = app.ranks_of_each_host;
    }
    void map_by(App&, const std::string& option) {
        line_.options.map_by = value(option);
        ignore(option, line_.options.map_by);
    }
    void rank_by(App&, const std::string& option) {
        line_.options.rank_by = value(option);
        ignore(option, line_.options.rank_by);
    }
    void mca(App&, const std::string& option) {
        const std::string name = value(option);
        line_.options.mca.emplace_back(name, value(option));
        ignore(option, name + " " + line_.options.mca.back().second);
    }
    void input(App&, const std::string& option) {
        const std::string who = value(option);
        int rank = 0;
        const auto [end, error] = std::from_chars(who.data(), who.data() + who.size(), rank);
        if (who == "none")
            line_.options.input_rank = -1;
        else if (who == "all")
            ignore(option, who);
        else if (error == std::errc{} && end == who.data() + who.size() && rank >= 0)
            line_.options.input_rank = rank;
        else
            mistake(fmt::format("{} takes a rank, none or all, not \"{}\"", option, who));
    }
    void output_pattern(App&, const std::string& option) {
        line_.options.output_pattern = value(option);
    }
    void error_pattern(App&, const std::string& option) {
        line_.options.error_pattern = value(option);
    }
    // Holds here in any case; scripts written for other launchers say it.
    void holds_anyhow(App&, const std::string&) {}
    void has_no_meaning(App&, const std::string& option) { ignore(option, ""); }

    void ignore(const std::string& option, const std::string& with) {
        line_.options.ignored.push_back(with.empty() ? option : option + " " + with);
    }

    // The ranks get the caller's, wherever they run. False: the caller has none of that name.
    bool pass_on(const std::string& name) {
        const char* set = std::getenv(name.c_str());
        if (set != nullptr) line_.options.variables.emplace_back(name, set);
        return set != nullptr;
    }

    // "-x NAME=VALUE", "-x NAME VALUE", or "-x NAME" for what the caller has anyway.
    void export_variable(const std::string& text) {
        const std::size_t equals = text.find('=');
        if (equals != std::string::npos) {
            line_.options.variables.emplace_back(text.substr(0, equals), text.substr(equals + 1));
            return;
        }
        if (pass_on(text)) return;
        line_.options.variables.emplace_back(text, value("-x " + text));
    }

    int count(const std::string& option, const char* what) {
        const std::string text = value(option);
        const std::optional<int> number = rank_count(text);
        if (!number)
            mistake(fmt::format("{} takes a number of {} from 1 to {}, not \"{}\"", option, what,
                                kMostRanks, text));
        return number.value_or(1);
    }

    std::string value(const std::string& option) {
        if (joined_) return *std::exchange(joined_, std::nullopt);
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
    std::optional<std::string> joined_;  // the value of an option written with '='
    CommandLine line_;
};

const Parser::Option* Parser::find(std::string_view option) {
    static constexpr Option kOptions[] = {
        {" -h -help --help ", &Parser::show_help},
        {" -V -version --version ", &Parser::show_version},
        {" -n -np --np --n -c ", &Parser::ranks},
        {" -l -label --label -prepend-rank --prepend-rank --tag-output -tag-output ",
         &Parser::label},
        {" -q --quiet -quiet ", &Parser::quiet},
        {" -timeout --timeout ", &Parser::timeout},
        {" --keep-going -disable-auto-cleanup --disable-auto-cleanup --enable-recovery ",
         &Parser::keep_going},
        {" --with-ft ", &Parser::with_ft},
        {" -bind-to --bind-to ", &Parser::bind},
        {" --gpus-per-rank --gpus-per-task ", &Parser::gpus_per_rank},
        {" --gpu-bind ", &Parser::bind_gpus},
        {" -report-bindings --report-bindings ", &Parser::report_bindings},
        {" -hosts --hosts -host --host -H ", &Parser::hosts},
        {" -f --hostfile -hostfile --machinefile -machinefile ", &Parser::host_file},
        {" --launcher ", &Parser::launcher},
        {" --show ", &Parser::show_command},
        {" -wdir --wdir -wd ", &Parser::folder},
        {" -env --env ", &Parser::variable},
        {" -genv --genv ", &Parser::variable_for_all},
        {" -x ", &Parser::exported},
        {" -genvlist --genvlist -envlist --envlist ", &Parser::listed_variables},
        {" -ppn --ppn -perhost --perhost ", &Parser::ranks_per_host},
        {" -N --npernode -npernode ", &Parser::ranks_of_each_host},
        {" --map-by -map-by ", &Parser::map_by},
        {" --rank-by -rank-by ", &Parser::rank_by},
        {" --mca -mca --gmca -gmca --prtemca --pmixmca ", &Parser::mca},
        {" --serve ", &Parser::serve},
        {" --stdin -stdin -s ", &Parser::input},
        {" -outfile-pattern --outfile-pattern ", &Parser::output_pattern},
        {" -errfile-pattern --errfile-pattern ", &Parser::error_pattern},
        {" --oversubscribe -oversubscribe --allow-run-as-root -genvall --genvall -envall --envall ",
         &Parser::holds_anyhow},
        {" --display-map --display-allocation --use-hwthread-cpus -nolocal --nolocal ",
         &Parser::has_no_meaning},
    };
    for (const Option& known : kOptions)
        if (known.names.find(fmt::format(" {} ", option)) != std::string_view::npos) return &known;
    return nullptr;
}

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

}  // namespace gantry::mpiexec
