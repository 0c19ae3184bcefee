// SPDX-License-Identifier: BSD-3-Clause
#include "binding.hpp"

#include "options.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <tuple>

namespace gantry::mpiexec {
namespace {

namespace fs = std::filesystem;

constexpr std::array kNames = {std::pair{BindTo::share, "share"}, std::pair{BindTo::core, "core"},
                               std::pair{BindTo::numa, "numa"}, std::pair{BindTo::socket, "socket"},
                               std::pair{BindTo::none, "none"}};

std::map<int, int> numa_node_of_processor(const fs::path& system) {
    std::map<int, int> found;
    std::error_code nothing_there;
    for (const auto& entry :
         fs::directory_iterator(system / "devices" / "system" / "node", nothing_there)) {
        const std::string name = entry.path().filename();
        if (!name.starts_with("node") || name.size() < 5 || std::isdigit(name[4]) == 0) continue;
        for (const int processor : read_list(entry.path() / "cpulist"))
            found[processor] = std::atoi(name.c_str() + 4);
    }
    return found;
}

Processors together(std::vector<Core>::const_iterator begin,
                    std::vector<Core>::const_iterator end) {
    Processors all;
    for (auto core = begin; core != end; ++core)
        all.insert(all.end(), core->processors.begin(), core->processors.end());
    std::sort(all.begin(), all.end());
    return all;
}

// Part `number` of `parts` of so many things.
struct Range {
    std::size_t begin, end;
};
Range part(std::size_t things, int number, int parts) {
    const auto n = static_cast<std::size_t>(number), of = static_cast<std::size_t>(parts);
    return {n * things / of, (n + 1) * things / of};
}

// The longest piece of the range that lies on one NUMA node.
Range on_one_node(const std::vector<Core>& cores, Range range) {
    Range best{range.begin, range.begin};
    for (std::size_t begin = range.begin, at = begin; at < range.end; ++at) {
        if (cores[at].numa_node != cores[begin].numa_node) begin = at;
        if (at + 1 - begin > best.end - best.begin) best = {begin, at + 1};
    }
    return best;
}

std::vector<Processors> shares(const std::vector<Core>& cores, int ranks) {
    std::set<int> nodes;
    for (const Core& core : cores)
        nodes.insert(core.numa_node);
    const bool fits_a_node = static_cast<std::size_t>(ranks) >= nodes.size();
    std::vector<Processors> sets;
    for (int rank = 0; rank < ranks; ++rank) {
        Range share = part(cores.size(), rank, ranks);
        if (fits_a_node) share = on_one_node(cores, share);
        sets.push_back(together(cores.begin() + static_cast<std::ptrdiff_t>(share.begin),
                                cores.begin() + static_cast<std::ptrdiff_t>(share.end)));
    }
    return sets;
}

// One set of processors for each value of the cores' member, and the ranks divided among the sets.
std::vector<Processors> by(int Core::*member, const std::vector<Core>& cores, int ranks) {
    std::map<int, std::vector<Core>> groups;
    for (const Core& core : cores)
        groups[core.*member].push_back(core);
    std::vector<Processors> sets, of_rank;
    for (const auto& [number, group] : groups)
        sets.push_back(together(group.begin(), group.end()));
    for (int rank = 0; rank < ranks; ++rank)
        of_rank.push_back(
            sets[part(sets.size(), rank, std::max(ranks, static_cast<int>(sets.size()))).begin]);
    return of_rank;
}

Binding divide_in_shares(const std::vector<Core>& cores, int ranks, RankThreads threads) {
    if (ranks == 1) return {{}, "one rank may use every processor", {}};
    if (static_cast<std::size_t>(ranks) > cores.size())
        return {{}, fmt::format("{} ranks share {} cores", ranks, cores.size()), {}};
    Binding binding{shares(cores, ranks), {}, {}};
    std::size_t processors = 0;
    for (const Core& core : cores)
        processors += core.processors.size();
    const bool tight = std::any_of(binding.ranks.begin(), binding.ranks.end(),
                                   [](const Processors& set) { return set.size() < 2; });
    // Where no processor is left over, a thread takes turns with its rank anyway.
    const bool some_are_left = processors > static_cast<std::size_t>(ranks);
    if (threads == RankThreads::with_progress_thread && tight && some_are_left)
        return {{},
                fmt::format("their threads (GANTRY_PROGRESS=thread) share the {} processors that "
                            "{} ranks leave",
                            processors - static_cast<std::size_t>(ranks), ranks),
                {}};
    return binding;
}

bool wants_progress_thread(const Options& options) {
    const auto asks = [](const Variables& variables) {
        return std::find(variables.begin(), variables.end(),
                         std::pair<std::string, std::string>{"GANTRY_PROGRESS", "thread"}) !=
               variables.end();
    };
    const char* ours = std::getenv("GANTRY_PROGRESS");
    return asks(options.variables) ||
           std::any_of(options.apps.begin(), options.apps.end(),
                       [&](const App& app) { return asks(app.variables); }) ||
           (ours != nullptr && std::string_view(ours) == "thread");
}

// Empty when the system does not say, or does not let us choose.
Processors allowed_processors() {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0 || sched_setaffinity(0, sizeof set, &set) != 0)
        return {};
    Processors found;
    for (int processor = 0; processor < CPU_SETSIZE; ++processor)
        if (CPU_ISSET(processor, &set)) found.push_back(processor);
    return found;
}

}  // namespace

std::optional<BindTo> bind_to(std::string_view name) {
    if (name == "package") return BindTo::socket;
    for (const auto& [unit, text] : kNames)
        if (name == text) return unit;
    return std::nullopt;
}

const char* name_of(BindTo unit) {
    return std::find_if(kNames.begin(), kNames.end(),
                        [unit](const auto& row) { return row.first == unit; })
        ->second;
}

std::vector<Core> read_cores(const fs::path& system, const Processors& allowed) {
    const std::map<int, int> node_of = numa_node_of_processor(system);
    std::map<std::tuple<int, int, int>, Core> cores;  // by node, socket and first processor
    for (const int processor : allowed) {
        const fs::path topology =
            system / "devices" / "system" / "cpu" / fmt::format("cpu{}", processor) / "topology";
        const Processors siblings = read_list(topology / "thread_siblings_list");
        const Processors socket = read_list(topology / "physical_package_id");
        const auto node = node_of.find(processor);
        const int first = siblings.empty() ? processor : siblings.front();
        Core& core = cores[{node == node_of.end() ? 0 : node->second,
                            socket.empty() ? 0 : socket.front(), first}];
        core.processors.push_back(processor);
    }
    std::vector<Core> found;
    for (auto& [place, core] : cores) {
        std::tie(core.numa_node, core.socket, std::ignore) = place;
        found.push_back(std::move(core));
    }
    return found;
}

Binding divide(BindTo unit, const std::vector<Core>& cores, int ranks, RankThreads threads) {
    switch (unit) {
        case BindTo::none: return {{}, "--bind-to none", {}};
        case BindTo::share: return divide_in_shares(cores, ranks, threads);
        case BindTo::numa: return {by(&Core::numa_node, cores, ranks), {}, {}};
        case BindTo::socket: return {by(&Core::socket, cores, ranks), {}, {}};
        case BindTo::core: break;
    }
    if (static_cast<std::size_t>(ranks) > cores.size())
        return {{},
                {},
                fmt::format("--bind-to core: {} ranks, but this job may use {} core{}; start fewer "
                            "ranks, or leave the option out",
                            ranks, cores.size(), cores.size() == 1 ? "" : "s")};
    Binding binding;
    for (int rank = 0; rank < ranks; ++rank)
        binding.ranks.push_back(cores[static_cast<std::size_t>(rank)].processors);
    return binding;
}

Binding binding_for(const Options& options) {
    const BindTo unit = options.bind_to.value_or(BindTo::share);
    const Processors allowed = allowed_processors();
    if (allowed.empty() && unit != BindTo::none) {
        const std::string why = "this system does not let mpiexec choose processors";
        if (!options.bind_to) return {{}, why, {}};
        return {{}, {}, fmt::format("--bind-to {}: {}; leave it out", name_of(unit), why)};
    }
    return divide(unit, read_cores("/sys", allowed), options.total_ranks(),
                  wants_progress_thread(options) ? RankThreads::with_progress_thread
                                                 : RankThreads::program_only);
}

std::string report(const Binding& binding) {
    if (binding.ranks.empty())
        return fmt::format("mpiexec: the ranks are not bound: {}\n", binding.why_not);
    std::string text;
    for (std::size_t rank = 0; rank < binding.ranks.size(); ++rank)
        text +=
            fmt::format("mpiexec: rank {} is bound to processor{} {}\n", rank,
                        binding.ranks[rank].size() == 1 ? "" : "s", listed(binding.ranks[rank]));
    return text;
}

Processors read_list(const fs::path& path) {
    std::ifstream file(path);
    Processors found;
    for (std::string part; std::getline(file, part, ',');) {
        int first = 0, last = 0;
        char dash = 0;
        std::istringstream words(part);
        if (!(words >> first)) break;
        if (!(words >> dash >> last)) last = first;
        for (int each = first; each <= last; ++each)
            found.push_back(each);
    }
    return found;
}

std::string listed(const Processors& processors) {
    std::string text;
    for (std::size_t begin = 0, end = 0; begin < processors.size(); begin = end) {
        for (end = begin + 1;
             end < processors.size() && processors[end] == processors[end - 1] + 1;)
            ++end;
        text += fmt::format("{}{}", text.empty() ? "" : ",", processors[begin]);
        if (end - begin > 1) text += fmt::format("-{}", processors[end - 1]);
    }
    return text;
}

}  // namespace gantry::mpiexec
