// SPDX-License-Identifier: BSD-3-Clause
//
// How reads and writes of files go: one rank's, by memory and by runs; and whose go together.
#include "golden/pinned.hpp"
#include "plan/io_plan.hpp"

#include <fmt/format.h>

#include <cstring>

namespace gantry::test {
namespace {

using namespace plan;

std::string alone() {
    std::string text = "== one rank: memory run, file run, file gap of 64 MiB ==\n";
    struct Runs {
        Bytes memory, file, gap;
    };
    const Runs all[] = {{64 * kMiB, 64 * kMiB, 0},
                        {8, 64 * kMiB, 0},
                        {4 * kKiB, 64 * kMiB, 0},
                        {64 * kMiB, 8, 24},
                        {64 * kMiB, 4096, 4096},
                        {64 * kMiB, 4096, 64 * kKiB},
                        {8, 8, 8},
                        {64 * kMiB, 1 * kMiB, 3 * kMiB}};
    for (const char* place :
         {"host", "host to tmpfs", "device", "device to tmpfs", "device with direct storage"})
        for (const bool writes : {true, false})
            for (const Runs& runs : all) {
                const IoPlan plan =
                    io_plan({.writes = writes,
                             .on_device = place[0] == 'd',
                             .strided_memory = runs.memory < 64 * kMiB,
                             .in_memory = std::strstr(place, "tmpfs") != nullptr,
                             .bytes = 64 * kMiB,
                             .memory_run = runs.memory,
                             .file_run = runs.file,
                             .file_gap = runs.gap,
                             .largest_slot = 4 * kMiB,
                             .direct_storage = std::strstr(place, "storage") != nullptr});
                text += fmt::format("{} {} memory {} file {} gap {}: {}: {} ({})\n", place,
                                    writes ? "write" : "read", runs.memory, runs.file, runs.gap,
                                    name(plan.way), describe(plan), plan.why);
            }
    return text;
}

std::string carriers() {
    std::string text = "\n== who makes the system calls of a piece that may wait ==\n";
    for (const bool has_ring : {true, false})
        for (const bool ring_allowed : {true, false})
            for (const bool direct_storage : {false, true})
                for (const bool one_call : {true, false}) {
                    const IoCarrierPlan plan = io_carrier({.has_ring = has_ring,
                                                           .ring_allowed = ring_allowed,
                                                           .direct_storage = direct_storage,
                                                           .one_call = one_call});
                    text += fmt::format("{}{}{}, {}: {} ({})\n", has_ring ? "a ring" : "no ring",
                                        ring_allowed ? "" : ", against a hint",
                                        direct_storage ? ", direct storage" : "",
                                        one_call ? "one call" : "several calls", name(plan.carrier),
                                        plan.why);
                }
    return text;
}

std::string line(const char* what, const CollectiveIoQuestion& question) {
    const CollectiveIoPlan plan = collective_io_plan(question);
    std::string text =
        fmt::format("{}: {} ({})", what, plan.together ? "together" : "alone", plan.why);
    if (plan.together) {
        text += fmt::format(", from {} to {}, parts of {}, windows of {}{}, by", plan.low,
                            plan.high, plan.part, plan.window,
                            plan.sieve > 0 ? fmt::format(", gaps of {}", plan.sieve) : "");
        for (const int each : plan.aggregators)
            text += fmt::format(" {}", each);
        if (plan.at_once) text += " themselves";
        if (plan.on_node) text += ", in windows that all see";
    }
    return text + "\n";
}

std::string together() {
    std::string text = "\n== all ranks ==\n";
    const std::vector<int> one_node(6, 0), two_nodes{0, 0, 0, 1, 1, 1};
    const std::vector<int> many(12, 0);
    const auto extents = [](int ranks, std::int64_t apart, std::int64_t reach, Bytes bytes,
                            Bytes run) {
        std::vector<IoExtent> all;
        for (int rank = 0; rank < ranks; ++rank)
            all.push_back({rank * apart, rank * apart + reach, bytes, run});
        return all;
    };
    const auto interleaved = extents(6, 512, 60'000'000, 10'000'000, 512);
    const auto large_runs = extents(6, 4 << 20, 600 << 20, 100 << 20, 4 << 20);
    const auto disjoint = extents(6, 10'000'000, 10'000'000, 10'000'000, 10'000'000);
    const auto of_many = extents(12, 512, 60'000'000, 5'000'000, 512);
    std::vector<IoExtent> none(6), twice = interleaved, one(6);
    twice[2].run = 0;
    one[3] = {1000, 2000, 1000, 1000};
    const Bytes window = 4 * kMiB;
    text += line("nothing", {.extents = none, .nodes = one_node, .window = window});
    text += line("interleaved",
                 {.writes = true, .extents = interleaved, .nodes = one_node, .window = window});
    auto in_memory = interleaved;
    for (IoExtent& each : in_memory)
        each.with_gaps = 3 * each.bytes;
    text += line("interleaved, read in memory, gaps of twice as much",
                 {.extents = in_memory, .nodes = one_node, .window = window});
    text += line("interleaved, written in memory", {.writes = true,
                                                    .in_memory = true,
                                                    .extents = in_memory,
                                                    .nodes = one_node,
                                                    .window = window});
    in_memory[1].with_gaps = 15 * in_memory[1].bytes;
    text += line("interleaved, read in memory, large gaps",
                 {.extents = in_memory, .nodes = one_node, .window = window});
    auto seen = interleaved;
    for (IoExtent& each : seen) {
        each.sees_windows = true;
        each.with_gaps = 3 * each.bytes;
    }
    text += line(
        "interleaved, windows are seen",
        {.writes = true, .in_memory = true, .extents = seen, .nodes = one_node, .window = window});
    text += line("interleaved, windows are seen, read in memory, gaps of twice as much",
                 {.in_memory = true, .extents = seen, .nodes = one_node, .window = window});
    for (IoExtent& each : seen)
        each.with_gaps = each.bytes + each.bytes / 4;
    text += line("interleaved, windows are seen, read in memory, small gaps",
                 {.in_memory = true, .extents = seen, .nodes = one_node, .window = window});
    seen[4].sees_windows = false;
    text += line("interleaved, one sees no windows",
                 {.writes = true, .extents = seen, .nodes = one_node, .window = window});
    text += line("interleaved, two nodes",
                 {.extents = interleaved, .nodes = two_nodes, .window = window});
    text += line("interleaved, two nodes, 2 aggregators",
                 {.extents = interleaved, .nodes = two_nodes, .aggregators = 2, .window = window});
    text += line("interleaved, 12 ranks of a node",
                 {.extents = of_many, .nodes = many, .window = window});
    text += line("interleaved, stripes of 1 MiB",
                 {.extents = interleaved, .nodes = one_node, .window = window, .stripe = kMiB});
    text += line("interleaved, large runs",
                 {.extents = large_runs, .nodes = one_node, .window = window});
    text += line("disjoint", {.extents = disjoint, .nodes = one_node, .window = window});
    text += line(
        "disjoint, by hint",
        {.extents = disjoint, .nodes = one_node, .together = IoSwitch::enable, .window = window});
    text += line("interleaved, in atomic mode", {.writes = true,
                                                 .atomic = true,
                                                 .extents = interleaved,
                                                 .nodes = one_node,
                                                 .together = IoSwitch::enable,
                                                 .window = window});
    text += line("interleaved, against a hint", {.extents = interleaved,
                                                 .nodes = one_node,
                                                 .together = IoSwitch::disable,
                                                 .window = window});
    text +=
        line("one rank of all, by hint",
             {.extents = one, .nodes = one_node, .together = IoSwitch::enable, .window = window});
    text +=
        line("bytes twice, by hint",
             {.extents = twice, .nodes = one_node, .together = IoSwitch::enable, .window = window});
    return text;
}

TEST(GoldenIoPlans, AreThoseOfTheTable) {
    expect_pinned(GANTRY_TEST_DATA "/io_plans.txt", alone() + together() + carriers());
}

}  // namespace
}  // namespace gantry::test
