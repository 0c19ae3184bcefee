// SPDX-License-Identifier: BSD-3-Clause
#include "scale.hpp"

#include "bench/chart.hpp"
#include "world/harness/collective_times.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>

namespace gantry::reproduce {
namespace {

using nlohmann::json;
using world::App;
using world::AppCase;
using world::Cluster;
using world::Halo;

double milliseconds(double nanoseconds) {
    return nanoseconds / 1e6;
}

struct Series {
    const char* name;
    std::function<AppCase(int ranks)> at;
};

// The same problem on ever more ranks. Slabs of 512^3 cells end at 64 ranks: thinner ones than 8 planes are
// nearly all halo, and 16 MiB of it on each side of a rank.
const std::vector<Series>& series() {
    static const std::vector<Series> all = {
        {"LBM-3D",
         [](int ranks) {
             return AppCase{App::lbm, {512, 512, 512}, world::cube(ranks)};
         }},
        {"LBM-1D",
         [](int ranks) {
             return AppCase{App::lbm, {512, 512, 512}, {1, 1, ranks}};
         }},
        {"AWP", [](int ranks) {
             int x = 1;
             while (4 * x * x <= ranks)
                 x *= 2;
             return AppCase{App::awp, {1024, 1024, 512}, {x, ranks / x, 1}};
         }}};
    return all;
}

struct Collective {
    const char* name;
    world::Kind kind;
    Bytes bytes;
    int most_ranks;
};
constexpr Collective kCollectives[] = {{"barrier", world::Kind::barrier, 0, 1024},
                                       {"allreduce 8 B", world::Kind::allreduce, 8, 1024},
                                       {"bcast 1 MiB", world::Kind::bcast, kMiB, 256},
                                       {"alltoall 4 KiB", world::Kind::alltoall, 4 * kKiB, 256}};

bool is_asked(const ScaleOptions& options, std::string_view name) {
    return options.only.empty() || std::ranges::find(options.only, name) != options.only.end();
}

bool fits(const AppCase& step) {
    for (std::size_t axis = 0; axis < 3; ++axis)
        if (step.cells[axis] % step.dims[axis] != 0 || step.cells[axis] / step.dims[axis] < 8)
            return false;
    return true;
}

json row_of(const AppTimes& times, const char* name, const Cluster& cluster) {
    json ways = json::array();
    for (const world::HaloTimes& way : times.ways)
        ways.push_back({{"exchange", std::string(world::name(way.way))},
                        {"step_ms", milliseconds(static_cast<double>(way.step))},
                        {"communication", way.communication()},
                        {"below_staged", way.below(times.best_staged())},
                        {"messages", way.messages},
                        {"envelopes", way.envelopes},
                        {"bytes", way.bytes},
                        {"memory", way.memory}});
    return {{"application", name},
            {"cluster", std::string(cluster.name)},
            {"ranks", times.step.ranks()},
            {"case", times.step.words()},
            {"compute_ms", milliseconds(static_cast<double>(times.ways[0].compute))},
            {"gain", times.gain()},
            {"ideal_gain", times.ideal_gain()},
            {"ways", ways}};
}

void print(const AppTimes& times) {
    fmt::print("\n{}: computing {:.3f} ms, {:.0f} messages a rank and step\n", times.step.words(),
               milliseconds(static_cast<double>(times.ways[0].compute)), times.ways[0].messages);
    for (const world::HaloTimes& way : times.ways)
        fmt::print(
            "  {:<12}{:>10.3f} ms  communication {:>5.1f} %  below staged {:>6.1f} %  "
            "{:>7.1f} envelopes  {:>8.1f} KiB sent  {:>8.1f} KiB held\n",
            world::name(way.way), milliseconds(static_cast<double>(way.step)),
            100 * way.communication(), 100 * way.below(times.best_staged()), way.envelopes,
            way.bytes / 1024, static_cast<double>(way.memory) / 1024);
    std::fflush(stdout);  // the next one may take minutes
}

}  // namespace

const world::HaloTimes& AppTimes::of(Halo way) const {
    return *std::ranges::find(ways, way, &world::HaloTimes::way);
}

const world::HaloTimes& AppTimes::fastest(std::initializer_list<Halo> among) const {
    const world::HaloTimes* best = nullptr;
    for (const world::HaloTimes& each : ways)
        if (std::ranges::find(among, each.way) != among.end() &&
            (best == nullptr || each.step < best->step))
            best = &each;
    return *best;
}

double AppTimes::ideal_gain() const {
    const auto staged = static_cast<double>(best_staged().step);
    return 1 - (static_cast<double>(best_staged().compute) + wire) / staged;
}

AppTimes measure_app(const Cluster& cluster, const AppCase& step, const std::vector<Halo>& ways) {
    AppTimes times;
    times.step = step;
    for (const Halo way : ways)
        times.ways.push_back(world::measure_halo(cluster, step, way));
    const model::Machine machine = world::machine_of(cluster);
    const auto bytes = static_cast<Bytes>(times.ways[0].bytes);
    times.wire = static_cast<double>(machine.network.rate.time(bytes));
    return times;
}

int scale(const ScaleOptions& options) {
    json rows = json::array();
    std::string pictures;
    for (const Cluster& cluster : world::clusters()) {
        if (!options.cluster.empty() && options.cluster != cluster.name) continue;
        if (!options.json) fmt::print("\n== {}: {} ==\n", cluster.name, cluster.about);
        bench::Chart gains{
            fmt::format("{}: how much less time a step takes than staged by the user",
                        cluster.name),
            "ranks",
            "per cent",
            bench::Scale::linear,
            bench::Sizes::numbers,
            {},
            {}};
        bench::Chart shares{fmt::format("{}: communication, share of a step", cluster.name),
                            "ranks",
                            "per cent",
                            bench::Scale::linear,
                            bench::Sizes::numbers,
                            {},
                            {}};
        for (const Series& one : series()) {
            if (!is_asked(options, one.name)) continue;
            bench::Curve gain{one.name, {}}, staged{std::string(one.name) + ", staged", {}},
                ours{std::string(one.name) + ", datatypes", {}};
            for (const int ranks : options.ranks) {
                const AppCase step = one.at(ranks);
                if (!fits(step)) continue;
                const AppTimes times = measure_app(
                    cluster, step, {std::begin(world::kHalos), std::end(world::kHalos)});
                if (!options.json) print(times);
                rows.push_back(row_of(times, one.name, cluster));
                gain.points.push_back({1. * ranks, 100 * times.gain()});
                staged.points.push_back({1. * ranks, 100 * times.best_staged().communication()});
                ours.points.push_back({1. * ranks, 100 * times.best_ours().communication()});
            }
            gains.curves.push_back(gain);
            shares.curves.push_back(staged);
            shares.curves.push_back(ours);
        }
        pictures += bench::svg(gains) + bench::svg(shares);
        for (const Collective& each : kCollectives)
            for (const int ranks : options.ranks) {
                if (ranks > each.most_ranks || !is_asked(options, "collectives")) continue;
                const world::CollectiveTime time =
                    world::measure_collective(cluster, ranks, {each.kind, each.bytes});
                const double us = static_cast<double>(time.time) / 1000;
                if (!options.json)
                    fmt::print("  {:<16}{:>6} ranks {:>12.1f} us  {:>7.1f} envelopes a rank\n",
                               each.name, ranks, us, time.envelopes);
                rows.push_back({{"collective", each.name},
                                {"cluster", std::string(cluster.name)},
                                {"ranks", ranks},
                                {"us", us},
                                {"envelopes", time.envelopes}});
            }
    }
    if (options.json) fmt::print("{}\n", rows.dump(1));
    if (options.picture.empty()) return 0;
    std::ofstream out(options.picture);
    out << "<!doctype html>\n<meta charset=\"utf-8\">\n<title>Gantry at scale</title>\n"
        << pictures;
    out.close();
    if (!out) {
        fmt::print(stderr, "gantry scale: writing {} failed\n", options.picture);
        return 1;
    }
    return 0;
}

}  // namespace gantry::reproduce
