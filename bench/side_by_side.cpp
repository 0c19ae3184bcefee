// SPDX-License-Identifier: BSD-3-Clause
#include "side_by_side.hpp"

#include "child.hpp"
#include "statistics.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

namespace gantry::bench {
namespace {

// Ours may take so long; who hangs shall not keep the others from running.
constexpr int kSecondsOfFirst = 600, kFewestSeconds = 60, kTimesTheFirst = 30;

// What the program itself says, or the last line that says something; launchers like to end with a
// rule of dashes.
std::string reason_in(const std::string& text) {
    std::string last = "it printed nothing", line;
    std::istringstream lines(text);
    while (std::getline(lines, line)) {
        if (line.starts_with("gantry-bench: ") || line.starts_with("ompi_abi: ")) return line;
        if (std::ranges::any_of(line, [](unsigned char c) { return std::isalpha(c) != 0; }))
            last = line;
    }
    return last;
}

// The document among whatever launchers and libraries print beside it.
nlohmann::ordered_json document_in(const std::string& output) {
    const auto begin = output.find("{\n  \"benchmark\"");
    if (begin == std::string::npos) return nullptr;
    const auto end = output.find("\n}", begin);
    if (end == std::string::npos) return nullptr;
    return nlohmann::ordered_json::parse(output.substr(begin, end + 2 - begin), nullptr, false);
}

using Environment = std::vector<std::pair<std::string, std::string>>;

Contender gantry(const std::string& name, const Environment& environment, const Options& options) {
    return {name,
            [name, environment, options](int seconds) {
                return run_gantry_bench(
                    name, {program_folder() + "/mpiexec", "-n", std::to_string(2 * options.pairs)},
                    environment, options, seconds);
            },
            false};
}

// Values of all rounds, by contender's column.
class Table {
  public:
    void add(const Told& told) {
        for (const std::string& column : told.columns) {
            if (std::ranges::find(columns_, column) == columns_.end()) columns_.push_back(column);
            for (const auto& [bytes, value] : told.values.at(column)) {
                samples_[column][bytes].push_back(value);
                sizes_.insert(bytes);
            }
        }
    }
    const std::vector<std::string>& columns() const { return columns_; }
    const std::set<Bytes>& sizes() const { return sizes_; }
    bool has(const std::string& column, Bytes bytes) const {
        const auto found = samples_.find(column);
        return found != samples_.end() && found->second.contains(bytes);
    }
    double value(const std::string& column, Bytes bytes) const {
        return median(samples_.at(column).at(bytes)).value;
    }
    // Of one column over another: each round's own, whose runs stood beside each other.
    Median quotient(const std::string& over, const std::string& under, Bytes bytes) const {
        const std::vector<double>& above = samples_.at(over).at(bytes);
        const std::vector<double>& below = samples_.at(under).at(bytes);
        std::vector<double> quotients;
        for (std::size_t round = 0; round < std::min(above.size(), below.size()); ++round)
            quotients.push_back(above[round] / below[round]);
        return median(std::move(quotients));
    }

  private:
    std::vector<std::string> columns_;
    std::map<std::string, std::map<Bytes, std::vector<double>>> samples_;
    std::set<Bytes> sizes_;
};

double ratio(const Table& table, const std::string& column, Bytes bytes, bool smaller_is_better) {
    const double ours = table.value(table.columns().front(), bytes);
    const double theirs = table.value(column, bytes);
    return smaller_is_better ? theirs / ours : ours / theirs;
}

// One value a run, which the first column's can be divided by. Runs of overlap and fresh have
// several.
bool has_ratios(const Options& options) {
    return options.benchmark != Benchmark::overlap && options.benchmark != Benchmark::fresh;
}

// A column of one run divided by the same of another.
struct Quotient {
    std::string name, over, under;
};
std::vector<Quotient> quotients_of(const Options& options) {
    if (options.benchmark != Benchmark::fresh) return {};
    return {{"first / staged", "Gantry: first, us", "staged: first, us"},
            {"all / staged", "Gantry: all, ms", "staged: all, ms"}};
}
std::optional<Median> value_of(const Quotient& quotient, const Table& table, Bytes bytes) {
    if (!table.has(quotient.over, bytes) || !table.has(quotient.under, bytes)) return std::nullopt;
    return table.quotient(quotient.over, quotient.under, bytes);
}

// Of fewer rounds all of them say less than 95 %.
bool has_interval(const Median& median) {
    return median.samples >= 6;
}

// Of a column's text, a gap included.
int width_of(const Options& options, const std::string& column) {
    return has_ratios(options) ? 24 : std::max(12, static_cast<int>(column.size()) + 3);
}

// What a reader must know about the runs, or nothing.
std::string note_on(const Options& options) {
    if (!without_ipc() || !uses_devices(options)) return {};
    return "GANTRY_IPC=off: device messages between processes are staged, the peers' too "
           "(UCX_TLS=cuda_copy,sm,self; I_MPI_OFFLOAD_IPC=0)";
}

void print_text(const Options& options, const Table& table, const Told& first,
                const std::map<std::string, std::string>& not_run) {
    fmt::print("# gantry-bench {} {} {}{}, {}\n# {}\n", name(options.benchmark),
               static_cast<char>(options.placement[0]), static_cast<char>(options.placement[1]),
               options.busy ? ", the second rank's GPU is kept busy" : "", first.library,
               first.timed);
    fmt::print("# Medians of {} rounds, the runs of a round one after the other{}\n",
               options.rounds,
               has_ratios(options)
                   ? fmt::format("; ratio: how many times better {} is", table.columns().front())
                   : "");
    if (const std::string note = note_on(options); !note.empty()) fmt::print("# {}\n", note);
    std::string heading = fmt::format("{:<10}", "# Size");
    for (const std::string& column : table.columns()) {
        heading += fmt::format(
            "{:>{}}", has_ratios(options) ? fmt::format("{} ({})", column, first.unit) : column,
            width_of(options, column));
        if (has_ratios(options) && column != table.columns().front())
            heading += fmt::format("{:>8}", "ratio");
    }
    for (const Quotient& quotient : quotients_of(options))
        heading += fmt::format("{:>18}{:>12}", quotient.name, "95 %");
    fmt::print("{}\n", heading);
    for (const Bytes bytes : table.sizes()) {
        std::string line = fmt::format("{:<10}", bytes);
        for (const std::string& column : table.columns()) {
            const bool known = table.has(column, bytes);
            const int width = width_of(options, column);
            line += known ? fmt::format("{:>{}.2f}", table.value(column, bytes), width)
                          : fmt::format("{:>{}}", "-", width);
            if (!has_ratios(options) || column == table.columns().front()) continue;
            line +=
                known && table.has(table.columns().front(), bytes)
                    ? fmt::format("{:>8.2f}", ratio(table, column, bytes, first.smaller_is_better))
                    : fmt::format("{:>8}", "-");
        }
        for (const Quotient& quotient : quotients_of(options)) {
            const std::optional<Median> value = value_of(quotient, table, bytes);
            line += fmt::format("{:>18}{:>12}", value ? fmt::format("{:.3f}", value->value) : "-",
                                value && has_interval(*value)
                                    ? fmt::format("{:.2f}-{:.2f}", value->low, value->high)
                                    : "-");
        }
        fmt::print("{}\n", line);
    }
    for (const auto& [who, why] : not_run)
        fmt::print("# not run: {}: {}\n", who, why);
}

void print_json(const Options& options, const Table& table, const Told& first,
                const std::map<std::string, std::string>& not_run) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const Bytes bytes : table.sizes()) {
        nlohmann::ordered_json row = {{"bytes", bytes}};
        for (const std::string& column : table.columns()) {
            if (!table.has(column, bytes)) continue;
            row["values"][column] = table.value(column, bytes);
            if (has_ratios(options) && column != table.columns().front() &&
                table.has(table.columns().front(), bytes))
                row["ratios"][column] = ratio(table, column, bytes, first.smaller_is_better);
        }
        for (const Quotient& quotient : quotients_of(options))
            if (const std::optional<Median> value = value_of(quotient, table, bytes)) {
                row["ratios"][quotient.name] = value->value;
                if (has_interval(*value))
                    row["intervals"][quotient.name] = {value->low, value->high};
            }
        rows.push_back(row);
    }
    nlohmann::ordered_json document = {
        {"benchmark", name(options.benchmark)},
        {"library", first.library},
        {"unit", first.unit},
        {"smaller_is_better", first.smaller_is_better},
        {"timed", first.timed},
        {"placement", std::string{static_cast<char>(options.placement[0]),
                                  static_cast<char>(options.placement[1])}},
        {"gpus", options.gpus},
        {"pairs", options.pairs},
        {"busy", options.busy},
        {"rounds", options.rounds},
        {"note", note_on(options)},
        {"rows", rows},
        {"not_run", not_run}};
    if (is_one_sided(options.benchmark)) {
        document["measure"] = name(options.measure);
        document["sync"] = name(options.sync);
        document["window"] = name(options.window_kind);
    }
    fmt::print("{}\n", document.dump(2));
}

}  // namespace

std::string program_folder() {
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    const std::string_view whole(path, length > 0 ? static_cast<std::size_t>(length) : 0);
    return std::string(whole.substr(0, whole.find_last_of('/')));
}

Told run_gantry_bench(const std::string& name, const std::vector<std::string>& launcher,
                      const std::vector<std::pair<std::string, std::string>>& environment,
                      const Options& options, int seconds) {
    Command command{launcher, environment};
    command.words.push_back(program_folder() + "/gantry-bench");
    for (const std::string& argument : arguments_of_a_run(options))
        command.words.push_back(argument);
    const Ended ended = run(command, seconds);
    const nlohmann::ordered_json document = document_in(ended.output);
    Told told;
    if (ended.status != 0 || !document.is_object()) {
        told.why_not = reason_in(ended.output);
        return told;
    }
    told.unit = document.at("unit");
    told.timed = document.at("timed");
    told.library = document.at("library");
    told.smaller_is_better = document.at("smaller_is_better");
    for (const auto& row : document.at("rows")) {
        const Bytes bytes = row.at("bytes");
        bool own = true;
        for (const auto& way : row.at("ways")) {
            const auto tell = [&](const std::string& column, double value) {
                if (!told.values.contains(column)) told.columns.push_back(column);
                told.values[column][bytes] = value;
            };
            if (way.contains("transfer_us")) {
                tell(name + ": transfer, us", way.at("transfer_us"));
                tell(name + ": total, us", way.at("total_us"));
                tell(name + ": hidden, %", way.at("value"));
            } else if (way.contains("all_ms")) {
                tell(name + ": first, us", way.at("value"));
                tell(name + ": 99 % below, us", way.at("most_us"));
                if (way.contains("later_us")) tell(name + ": later, us", way.at("later_us"));
                tell(name + ": all, ms", way.at("all_ms"));
            } else {
                tell(own ? name : std::string(way.at("name")), way.at("value"));
            }
            own = false;
        }
    }
    return told;
}

bool wants_side_by_side(int argc, char** argv) {
    if (argc > 1 && std::string_view(argv[1]) == "overlap") return true;
    if (argc > 1 && std::string_view(argv[1]) == "fresh") return true;
    return std::any_of(argv, argv + argc, [](std::string_view word) {
        return word == "--peers" || word.starts_with("--peers=") || word == "--rails" ||
               word.starts_with("--rails=");
    });
}

namespace {

// Also between ranks of one machine the messages take the network then.
void add_rails(std::vector<Contender>& contenders, const Options& options) {
    const auto add = [&](const std::string& name, const std::string& rails) {
        contenders.push_back(
            gantry(name, {{"GANTRY_RAILS", rails}, {"GANTRY_SHM", "off"}}, options));
    };
    std::string_view rest = options.rails;
    int rails = 0;
    for (; !rest.empty(); ++rails) {
        const std::string_view name = rest.substr(0, rest.find(','));
        add(std::string(name), std::string(name));
        rest.remove_prefix(std::min(name.size() + 1, rest.size()));
    }
    if (rails > 1) add("all", options.rails);
}

}  // namespace

int side_by_side(const Options& options) {
    std::vector<Contender> contenders;
    if (options.benchmark == Benchmark::overlap) {
        contenders.push_back(gantry("calls", {{"GANTRY_PROGRESS", "calls"}}, options));
        contenders.push_back(gantry("thread", {{"GANTRY_PROGRESS", "thread"}}, options));
    } else if (!options.rails.empty()) {
        add_rails(contenders, options);
    } else {
        contenders.push_back(gantry("Gantry", {}, options));
    }
    if (options.benchmark == Benchmark::fresh)
        contenders.push_back(gantry("staged", {{"GANTRY_IPC", "off"}}, options));
    if (!options.peers.empty())
        for (Contender& peer : peers_in(options.peers, options))
            contenders.push_back(std::move(peer));
    Table table;
    Told first;
    std::map<std::string, std::string> not_run;
    int seconds = options.patience > 0 ? options.patience : kSecondsOfFirst;
    // What comes first in one round comes last in the next: a machine may grow slower as it works.
    std::vector<const Contender*> order;
    for (const Contender& contender : contenders)
        order.push_back(&contender);
    for (int round = 0; round < options.rounds; ++round, std::ranges::reverse(order))
        for (const Contender* const next : order) {
            const Contender& contender = *next;
            if (not_run.contains(contender.name) || (round > 0 && contender.once)) continue;
            if (isatty(STDERR_FILENO))
                fmt::print(stderr, "\rround {} of {}: {:<20}", round + 1, options.rounds,
                           contender.name);
            const auto begin = std::chrono::steady_clock::now();
            const Told told = contender.run(seconds);
            const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
            if (options.patience == 0 && &contender == &contenders.front())
                seconds = std::max(kFewestSeconds, static_cast<int>(kTimesTheFirst * took.count()));
            if (!told.why_not.empty()) {
                not_run[contender.name] = told.why_not;
                continue;
            }
            if (first.unit.empty()) first = told;
            table.add(told);
        }
    if (isatty(STDERR_FILENO)) fmt::print(stderr, "\r{:40}\r", "");
    if (not_run.contains(contenders.front().name)) {
        fmt::print(stderr, "gantry-bench: {}: {}\n", contenders.front().name,
                   not_run[contenders.front().name]);
        return 1;
    }
    if (options.json)
        print_json(options, table, first, not_run);
    else
        print_text(options, table, first, not_run);
    return 0;
}

}  // namespace gantry::bench
