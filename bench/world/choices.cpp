// SPDX-License-Identifier: BSD-3-Clause
#include "choices.hpp"

#include "plan/text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace gantry::reproduce {
namespace {

using nlohmann::json;
using world::Cluster;
using world::CollectiveCase;
using world::Kind;

struct Named {
    const char* name;
    Kind kind;
    bool in_blocks;  // a size is what all blocks of a rank are together
};
constexpr Named kOperations[] = {{"barrier", Kind::barrier, false},
                                 {"bcast", Kind::bcast, false},
                                 {"reduce", Kind::reduce, false},
                                 {"allreduce", Kind::allreduce, false},
                                 {"reduce_scatter", Kind::reduce_scatter, true},
                                 {"scan", Kind::scan, false},
                                 {"allgather", Kind::allgather, true},
                                 {"allgatherv", Kind::allgatherv, true},
                                 {"alltoall", Kind::alltoall, true},
                                 {"alltoallv", Kind::alltoallv, true},
                                 {"gather", Kind::gather, true},
                                 {"scatter", Kind::scatter, true}};

// Of all ranks together, what they send from and receive into.
constexpr Bytes kMostMemory = 6 * kGiB;
// Algorithms that are expected to take so many times as long as the best one are left out.
constexpr Nanoseconds kHopeless = 8;

// One way of a call.
struct Timed {
    plan::Algorithm algorithm;
    int leaders;
    Nanoseconds expected, time;

    std::string words() const {
        std::string text(plan::name(algorithm));
        if (leaders > 0) text += fmt::format("/{}", leaders);
        return text;
    }
};

// All that the planner holds for possible, the one that it chose first.
std::vector<Timed> ways_of(const plan::CollChoice& choice, const Cluster& cluster,
                           const CollectiveCase& asked, int ranks) {
    std::vector<Timed> ways = {
        {choice.plan.algorithm, choice.plan.leaders, choice.plan.expected, 0}};
    for (int i = 0; i < choice.rejected_count; ++i) {
        const plan::CollRejected& lost = choice.rejected[static_cast<std::size_t>(i)];
        if (lost.expected > 0) ways.push_back({lost.algorithm, 0, lost.expected, 0});
    }
    // Of reductions with several leaders and with one.
    const bool reduces = asked.kind == Kind::reduce || asked.kind == Kind::allreduce;
    std::vector<Timed> all;
    for (const Timed& way : ways) {
        if (way.algorithm != plan::Algorithm::hierarchical || !reduces) {
            all.push_back(way);
            all.back().leaders = 0;
            continue;
        }
        std::vector<Timed> both;
        for (const int leaders : {1, cluster.ranks_per_node}) {
            CollectiveCase fixed = asked;
            fixed.fixed = way.algorithm;
            fixed.leaders = leaders;
            const plan::CollPlan plan = world::choice_of(cluster, ranks, fixed).plan;
            if (plan.leaders == leaders) both.push_back({way.algorithm, leaders, plan.expected, 0});
        }
        if (both.size() == 2 && both[1].leaders == way.leaders) std::swap(both[0], both[1]);
        all.insert(all.end(), both.begin(), both.end());
    }
    return all;
}

double microseconds(Nanoseconds time) {
    return static_cast<double>(time) / 1000;
}

struct Row {
    const Cluster& cluster;
    const char* operation;
    int ranks;
    Bytes bytes;
    std::vector<Timed> ways;  // the first one is chosen

    const Timed& best() const { return *std::ranges::min_element(ways, {}, &Timed::time); }
    double ratio() const {
        return static_cast<double>(ways[0].time) / static_cast<double>(best().time);
    }
};

void print(const Row& row, const ChoicesOptions& options) {
    if (options.json) {
        json ways = json::array();
        for (const Timed& way : row.ways)
            ways.push_back({{"algorithm", way.words()},
                            {"expected_us", microseconds(way.expected)},
                            {"us", microseconds(way.time)}});
        const json line = {{"cluster", std::string(row.cluster.name)},
                           {"collective", row.operation},
                           {"ranks", row.ranks},
                           {"bytes", row.bytes},
                           {"ratio", row.ratio()},
                           {"ways", ways}};
        fmt::print("{}\n", line.dump());
    } else {
        std::string others;
        for (std::size_t i = 1; i < row.ways.size(); ++i)
            others +=
                fmt::format("  {} {:.1f}", row.ways[i].words(), microseconds(row.ways[i].time));
        fmt::print(
            "{:<14}{:>5} ranks {:>9}  {:<22}{:>10.1f} us, expected {:>10.1f}  {:>5.2f}{}{}\n",
            row.operation, row.ranks, plan::bytes_text(row.bytes), row.ways[0].words(),
            microseconds(row.ways[0].time), microseconds(row.ways[0].expected), row.ratio(),
            row.ratio() > options.worse ? " *" : "  ", others);
    }
    std::fflush(stdout);  // the next one may take minutes
}

Row measure(const Cluster& cluster, const Named& operation, int ranks, Bytes bytes,
            const ChoicesOptions& options) {
    CollectiveCase asked{.kind = operation.kind, .bytes = bytes};
    asked.place = options.host ? world::Place::host : world::Place::device;
    asked.warm_ups = world::kMemoryIsKnown;
    asked.calls = world::Calls::apart;
    Row row{cluster, operation.name, ranks, bytes, {}};
    row.ways = ways_of(world::choice_of(cluster, ranks, asked), cluster, asked, ranks);
    if (options.only_chosen) row.ways.resize(1);
    const Nanoseconds least = std::ranges::min_element(row.ways, {}, &Timed::expected)->expected;
    std::erase_if(row.ways, [least](const Timed& way) { return way.expected > kHopeless * least; });
    for (Timed& way : row.ways) {
        CollectiveCase fixed = asked;
        if (&way != row.ways.data()) {
            fixed.fixed = way.algorithm;
            fixed.leaders = way.leaders;
        }
        way.time = world::measure_collective(cluster, ranks, fixed).time;
    }
    return row;
}

}  // namespace

std::vector<std::string> collectives_of_choices() {
    std::vector<std::string> names;
    for (const Named& operation : kOperations)
        names.emplace_back(operation.name);
    return names;
}

int choices(const ChoicesOptions& options) {
    bool any = false;
    for (const Cluster& cluster : world::clusters()) {
        if (!options.cluster.empty() && options.cluster != cluster.name) continue;
        if (!options.json) fmt::print("\n== {}: {} ==\n", cluster.name, cluster.about);
        for (const Named& operation : kOperations) {
            if (!options.operations.empty() &&
                std::ranges::find(options.operations, operation.name) == options.operations.end())
                continue;
            for (const int ranks : options.ranks) {
                Bytes before = ~Bytes{0};
                for (const Bytes size : options.sizes) {
                    Bytes bytes = operation.in_blocks ? size / static_cast<Bytes>(ranks) : size;
                    bytes = std::max<Bytes>(bytes / 8 * 8, 8);
                    if (operation.kind == Kind::barrier) bytes = 0;
                    if (bytes == std::exchange(before, bytes)) continue;
                    const auto of_rank =
                        operation.in_blocks ? bytes * static_cast<Bytes>(ranks) : bytes;
                    if (2 * of_rank * static_cast<Bytes>(ranks) > kMostMemory) continue;
                    print(measure(cluster, operation, ranks, bytes, options), options);
                    any = true;
                }
            }
        }
    }
    if (!any) fmt::print(stderr, "gantry scale: --sizes are too large for so many --ranks\n");
    return any ? 0 : 2;
}

}  // namespace gantry::reproduce
