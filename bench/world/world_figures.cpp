// SPDX-License-Identifier: BSD-3-Clause
//
// The published claims, in their order, in the simulated world. Tolerances are bounds of ours: what a
// figure was when it was published, or where that is not comparable, what the mechanism must give.
#include "figure.hpp"
#include "scale.hpp"
#include "world/harness/published.hpp"
#include "world/harness/published_alltoall.hpp"
#include "world/harness/published_rails.hpp"
#include "world/harness/published_ways.hpp"
#include "world/harness/published_windows.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::reproduce {
namespace {

using world::PublishedTable;
using world::SharedPinned;

constexpr const char* kC2050 = "C2050 and QDR, two nodes, 4 MiB";

double lower(Nanoseconds time, Nanoseconds baseline) {
    return PublishedTable::gain(time, baseline);
}
double microseconds(Nanoseconds time) {
    return static_cast<double>(time) / 1000;
}

// Of the loop of the slides, at the block size whose distance to Gantry is nearest to the published one.
std::string explanation(const PublishedTable& table, double published) {
    const auto nearest = std::ranges::min_element(table.slides_loop, {}, [&](const auto& loop) {
        return std::abs(lower(table.gantry, loop.time) - published);
    });
    return fmt::format(
        "the bound is the user's pipeline at its best block ({} KiB); beside the loop of the "
        "original "
        "slides, one blocking send a block of {} KiB, it is {:.1f} % lower",
        table.best_user().block / kKiB, nearest->block / kKiB,
        100 * lower(table.gantry, nearest->time));
}

std::string curves(const PublishedTable& table, const char* title) {
    bench::Chart chart{title,
                       "block, bytes",
                       "microseconds one way",
                       bench::Scale::linear,
                       bench::Sizes::bytes,
                       {},
                       {}};
    bench::Curve user{"user's pipeline", {}}, loop{"loop of the slides", {}}, ours{"Gantry", {}},
        naive{"copy and send", {}}, ideal{"ideal", {}};
    for (std::size_t i = 0; i < table.user_pipeline.size(); ++i) {
        const auto block = static_cast<double>(table.user_pipeline[i].block);
        user.points.push_back({block, microseconds(table.user_pipeline[i].time)});
        loop.points.push_back({block, microseconds(table.slides_loop[i].time)});
        ours.points.push_back({block, microseconds(table.gantry)});
        naive.points.push_back({block, microseconds(table.copy_and_send)});
        ideal.points.push_back({block, microseconds(table.ideal)});
    }
    chart.curves = {ours, user, loop, naive, ideal};
    return bench::svg(chart);
}

void point_to_point(Evidence& evidence) {
    for (const SharedPinned shared : {SharedPinned::with, SharedPinned::without}) {
        const bool with = shared == SharedPinned::with;
        const PublishedTable table = world::measure_published(shared);
        const std::string direct = with ? ", GPUDirect v1" : ", without GPUDirect v1";
        Figure naive{.row = with ? 1 : 2,
                     .claim = "Send and Recv, device to device" + direct,
                     .setting = kC2050,
                     .baseline = "cudaMemcpy + Send, Recv + cudaMemcpy",
                     .published = with ? 0.45 : 0.38};
        naive.world.value = lower(table.gantry, table.copy_and_send);
        naive.ideal = table.ideal_gain();
        naive.least = naive.published;
        Figure user{.row = with ? 3 : 4,
                    .claim = naive.claim,
                    .setting = kC2050,
                    .baseline = "MemcpyAsync + Isend, block by block",
                    .published = with ? 0.24 : 0.33};
        user.world.value = lower(table.gantry, table.best_user().time);
        user.least = 0;
        user.ideal = lower(table.ideal, table.best_user().time);
        user.note = explanation(table, *user.published);
        evidence.figures.push_back(naive);
        evidence.figures.push_back(user);
        evidence.pictures.push_back(
            curves(table, with ? "4 MiB, device to device, with GPUDirect v1"
                               : "4 MiB, device to device, without GPUDirect v1"));
    }
}

void windows(Evidence& evidence) {
    const world::PublishedWindows times = world::measure_windows();
    Figure put{.row = 5,
               .claim = "MPI_Put, device to device",
               .setting = kC2050,
               .baseline = "cudaMemcpy + Put + fence + cudaMemcpy",
               .published = 0.45};
    put.world.value = lower(times.put, times.copy_and_put);
    put.least = 0.45;
    put.note = fmt::format("MPI_Get likewise: {:.1f} % lower. The published size is not stated",
                           100 * lower(times.get, times.copy_and_get));
    evidence.figures.push_back(put);
}

void vectors(Evidence& evidence) {
    const world::PublishedVectors times = world::measure_vectors(4);
    Figure naive{.row = 6,
                 .claim = "vector datatype on the device, rows of 4 bytes",
                 .setting = kC2050,
                 .baseline = "cudaMemcpy2D + Send",
                 .published = 0.88};
    naive.world.value = lower(times.gantry, times.strided_copy);
    naive.least = 0.88;
    Figure by_hand{.row = 7,
                   .claim = naive.claim,
                   .setting = kC2050,
                   .baseline = "Memcpy2DAsync + MemcpyAsync + Isend, best block",
                   .published = 0};
    by_hand.world.value = lower(times.gantry, times.by_hand);
    by_hand.least = -0.05;
    by_hand.note = fmt::format("published as equal; the best block is {} KiB", times.block / kKiB);
    evidence.figures.push_back(naive);
    evidence.figures.push_back(by_hand);
}

void alltoall(Evidence& evidence) {
    const world::PublishedAlltoall times = world::measure_alltoall(world::kPublishedBlock);
    const char* setting = "C2050 and QDR, 8 nodes, 256 KiB for each";
    Figure user{.row = 8,
                .claim = "MPI_Alltoall, dynamic staging",
                .setting = setting,
                .baseline = "copy all + host Alltoall + copy back",
                .published = 0.44};
    user.world.value = times.below(times.user_staging);
    user.least = 0.44;
    user.ideal = lower(times.ideal, times.user_staging);
    Figure messages{.row = 9,
                    .claim = user.claim,
                    .setting = setting,
                    .baseline = "one device message after the other",
                    .published = 0.31};
    messages.world.value = times.below(times.messages);
    messages.least = 0.31;
    messages.ideal = lower(times.ideal, times.messages);
    evidence.figures.push_back(user);
    evidence.figures.push_back(messages);
}

// Of the better of both versions that stage themselves, how much shorter Gantry's better one is.
Figure application(const world::Cluster& cluster, const world::AppCase& step, Figure figure) {
    const AppTimes times = measure_app(
        cluster, step, {world::Halo::copies, world::Halo::staged, world::Halo::datatypes});
    figure.setting = std::string(cluster.about) + "; " + step.words();
    figure.baseline = "staged by the user, packed by a kernel or copied strided";
    figure.world.value = times.gain();
    figure.ideal = times.ideal_gain();
    figure.note = fmt::format(
        "a step {:.2f} ms staged, {:.2f} ms by datatypes; communication {:.0f} % and {:.0f} %",
        microseconds(times.best_staged().step) / 1000,
        microseconds(times.of(world::Halo::datatypes).step) / 1000,
        100 * times.best_staged().communication(),
        100 * times.of(world::Halo::datatypes).communication());
    return figure;
}

void applications(Evidence& evidence) {
    const world::Cluster& c2050 = *world::find_cluster("c2050-qdr");
    const world::Cluster& m2070 = *world::find_cluster("m2070-qdr");
    const auto reported = [](const char* claim, double published, double least) {
        Figure figure{.row = 10, .claim = claim, .published = published, .verified = false};
        figure.least = least;
        return figure;
    };
    using world::App;
    evidence.figures.push_back(application(c2050, {App::lbm, {256, 256, 256}, {1, 1, 4}},
                                           reported("LBM, a step, 4 nodes", 0.235, 0)));
    const struct {
        std::array<apps::Whole, 3> cells;
        double published;
    } grids[] = {{{256, 256, 256}, 0.137},
                 {{512, 256, 256}, 0.120},
                 {{512, 512, 256}, 0.118},
                 {{512, 512, 512}, 0.094}};
    for (const auto& grid : grids)
        evidence.figures.push_back(
            application(m2070, {App::lbm, grid.cells, {1, 1, 16}},
                        reported("LBM in slabs, a step, 16 nodes", grid.published, 0)));
    evidence.figures.push_back(
        application(m2070, {App::awp, {512, 512, 512}, {4, 2, 1}},
                    reported("AWP-ODC, a step, 8 nodes, one GPU a node", 0.111, 0)));
    Figure two = reported("AWP-ODC, a step, 8 nodes, two GPUs a node", 0.079, 0);
    two.setting = "two M2070 and QDR a node";
    two.baseline = "staged by the user";
    two.world.reason = "not described";
    two.world.story =
        "two ranks of a node share one network card, which the world does not describe";
    evidence.figures.push_back(two);
    const double by_ranks[] = {0.056, 0.082, 0.135, 0.155};
    for (int ranks = 8, i = 0; ranks <= 64; ranks *= 2, ++i) {
        Figure figure{.row = ranks < 64 ? 10 : 11,
                      .claim = "LBM-3D, 512^3, a step",
                      .published = ranks < 64 ? by_ranks[i] : 0.199,
                      .verified = ranks == 64};
        figure.least = ranks < 64 ? 0 : 0.155;
        figure = application(m2070, {App::lbm, {512, 512, 512}, world::cube(ranks)}, figure);
        if (ranks == 64)
            figure.note += "; published as up to 19.9 %, its chart says 15.5 % (not verified)";
        evidence.figures.push_back(figure);
    }
}

const world::TwoPaths& at(const std::vector<world::TwoPaths>& all, Bytes bytes) {
    return *std::ranges::find(all, bytes, &world::TwoPaths::bytes);
}

std::string curves(const std::vector<world::TwoPaths>& times, const char* title, const char* with,
                   const char* without) {
    bench::Chart chart{title,
                       "bytes",
                       "microseconds one way",
                       bench::Scale::logarithmic,
                       bench::Sizes::bytes,
                       {{with, {}}, {without, {}}},
                       {}};
    for (const world::TwoPaths& each : times) {
        chart.curves[0].points.push_back(
            {static_cast<double>(each.bytes), microseconds(each.with)});
        chart.curves[1].points.push_back(
            {static_cast<double>(each.bytes), microseconds(each.without)});
    }
    return bench::svg(chart);
}

// The largest loss at any size: the faster way is chosen on both sides of a limit.
double worst(const std::vector<world::TwoPaths>& times) {
    double least = 1;
    for (const world::TwoPaths& each : times)
        least = std::min(least, lower(each.with, each.without));
    return least;
}

void gpudirect(Evidence& evidence) {
    const std::vector<world::TwoPaths> times = world::measure_gpudirect();
    Figure small{.row = 12,
                 .claim = "GPUDirect RDMA, latency of 8 bytes",
                 .setting = "C2050 and QDR, cards read device memory at 1.0 and write at 5.2 GB/s",
                 .baseline = "pipeline through the host",
                 .published = 0.69,
                 .verified = false};
    small.world.value = lower(at(times, 8).with, at(times, 8).without);
    small.least = 0.5;
    Figure all = small;
    all.claim = "GPUDirect RDMA, the worst of all sizes to 4 MiB";
    all.published.reset();
    all.world.value = worst(times);
    all.least = -0.05;
    all.note = "the faster of both ways is taken on both sides of each limit";
    evidence.figures.push_back(small);
    evidence.figures.push_back(all);
    evidence.pictures.push_back(
        curves(times, "Device to device between nodes", "GPUDirect RDMA", "through the host"));
}

void ipc(Evidence& evidence) {
    const std::vector<world::TwoPaths> times = world::measure_ipc();
    Figure figure{.row = 13,
                  .claim = "CUDA IPC between two GPUs of a node, 256 KiB",
                  .setting = "C2050, two of a node",
                  .baseline = "through shared memory of the host"};
    figure.world.value = lower(at(times, 256 * kKiB).with, at(times, 256 * kKiB).without);
    figure.least = 0.15;
    figure.note =
        fmt::format("never slower at any size: the least is {:.1f} %", 100 * worst(times));
    evidence.figures.push_back(figure);
    evidence.pictures.push_back(
        curves(times, "Between two GPUs of a node", "CUDA IPC", "through shared memory"));
    double least = 1;
    for (const world::OneSided& each : world::measure_one_sided())
        least = std::min({least, lower(each.put, each.message), lower(each.get, each.message)});
    Figure one_sided{.row = 14,
                     .claim = "one-sided with IPC, put and get, the worst size",
                     .setting = "two H200 of a node, 8 bytes to 4 MiB",
                     .baseline = "Send and Recv"};
    one_sided.world.value = least;
    one_sided.least = 0;
    evidence.figures.push_back(one_sided);
}

void rails(Evidence& evidence) {
    const world::PublishedRails measured = world::measure_rails();
    const char* setting = "host messages over QDR rails, two nodes";
    Figure ports{.row = 15,
                 .claim = "two ports of one adapter, both ways",
                 .setting = setting,
                 .baseline = "one port",
                 .unit = Unit::times,
                 .published = world::kPublishedPorts};
    ports.world.value = measured.two_ports_both_ways;
    ports.ideal = world::kPublishedPorts;
    ports.least = 0.97 * world::kPublishedPorts;
    ports.most = 1.03 * world::kPublishedPorts;
    ports.note = "behind a bus that carries as much as the published one did";
    Figure adapters{.row = 16,
                    .claim = "two adapters, bandwidth",
                    .setting = setting,
                    .baseline = "one adapter",
                    .unit = Unit::times,
                    .published = 2.0};
    adapters.world.value = measured.two_adapters_bandwidth;
    adapters.ideal = 2;
    adapters.least = 1.95;
    Figure latency{.row = 16,
                   .claim = "two adapters, latency of 4 MiB",
                   .setting = setting,
                   .baseline = "one adapter",
                   .unit = Unit::times,
                   .published = 0.5};
    latency.world.value = measured.two_adapters_latency;
    latency.ideal = 0.5;
    latency.most = 0.55;
    evidence.figures.insert(evidence.figures.end(), {ports, adapters, latency});
}

void peers(Evidence& evidence) {
    Figure peers{.row = 17,
                 .claim = "other MPI libraries, device memory",
                 .setting = "Open MPI of 2011",
                 .baseline = "the other library",
                 .unit = Unit::times};
    peers.world.reason = "no other library";
    peers.world.story =
        "other libraries do not run in the world, and the published charts are lost";
    Figure acc{.row = 18,
               .claim = "OpenACC memory as fast as CUDA's",
               .setting = "device to device",
               .baseline = "the same with memory of cuMemAlloc",
               .unit = Unit::times,
               .published = 1.0};
    acc.world.reason = "processes show it";
    acc.world.story = "the world has no compiler";
    acc.ideal = 1;
    acc.most = 1.1;
    evidence.figures.push_back(peers);
    evidence.figures.push_back(acc);
}

}  // namespace

void add_world_figures(Evidence& evidence, const std::vector<int>& rows) {
    const struct {
        std::vector<int> rows;
        void (*add)(Evidence&);
    } parts[] = {{{1, 2, 3, 4}, &point_to_point},
                 {{5}, &windows},
                 {{6, 7}, &vectors},
                 {{8, 9}, &alltoall},
                 {{10, 11}, &applications},
                 {{12}, &gpudirect},
                 {{13, 14}, &ipc},
                 {{15, 16}, &rails},
                 {{17, 18}, &peers}};
    const auto asked = [&rows](int row) {
        return rows.empty() || std::ranges::find(rows, row) != rows.end();
    };
    for (const auto& part : parts)
        if (std::ranges::any_of(part.rows, asked)) part.add(evidence);
    std::erase_if(evidence.figures, [&](const Figure& figure) { return !asked(figure.row); });
    std::ranges::stable_sort(evidence.figures, {}, &Figure::row);
}

}  // namespace gantry::reproduce
