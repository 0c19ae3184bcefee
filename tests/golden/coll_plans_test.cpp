// SPDX-License-Identifier: BSD-3-Clause
//
// Which algorithm every collective takes, by number of ranks, nodes and bytes, on described machines.
#include "golden/pinned.hpp"
#include "plan/coll_facts.hpp"
#include "plan/coll_plan.hpp"
#include "plan/text.hpp"

#include <utility>

namespace gantry::test {
namespace {

using namespace plan;

struct Shape {
    const char* name;
    int ranks, nodes;
};
constexpr Shape kShapes[] = {{"2 ranks of one node", 2, 1},
                             {"8 ranks of one node", 8, 1},
                             {"7 nodes", 7, 7},
                             {"8 nodes", 8, 8},
                             {"64 nodes", 64, 64},
                             {"64 ranks on 16 nodes", 64, 16},
                             {"1024 ranks on 128 nodes", 1024, 128}};

CollQuestion question(Collective operation, Bytes bytes, const Shape& shape) {
    CollQuestion asked{.operation = operation, .bytes = bytes, .count = bytes / 8};
    asked.shape = {.ranks = shape.ranks,
                   .nodes = shape.nodes,
                   .most = (shape.ranks + shape.nodes - 1) / shape.nodes,
                   .fewest = shape.ranks / shape.nodes,
                   .in_order = true};
    return asked;
}

// The algorithms alone, each with the smallest of these sizes that takes it.
std::string lines(Collective operation, const Shape& shape, const CollFacts& facts,
                  const CollTuning& tuning, bool commutative,
                  CollMemory memory = CollMemory::unknown, bool mailbox = false) {
    std::string text;
    std::string_view said;
    for (Bytes bytes : {Bytes{8}, 4 * kKiB, 64 * kKiB, kMiB, 16 * kMiB, 128 * kMiB}) {
        CollQuestion asked = question(operation, bytes, shape);
        asked.commutative = commutative;
        asked.memory = memory;
        asked.node_segment.there = shape.nodes == 1 && (memory != CollMemory::unknown || mailbox);
        asked.node_segment.mailbox = mailbox;
        const CollPlan plan = choose_collective(asked, facts, tuning).plan;
        if (mailbox && plan.algorithm != Algorithm::mailbox) break;
        if (const std::string_view how = name(plan.algorithm); how != std::exchange(said, how))
            text += text.empty() ? fmt::format("{:<14} {}", name(operation), how)
                                 : fmt::format(", {} {}", bytes_text(bytes), how);
        if (operation == Collective::barrier || operation == Collective::alltoallv ||
            operation == Collective::gatherv || operation == Collective::scatterv ||
            operation == Collective::neighbor)
            break;
    }
    return text.empty() ? text : text + "\n";
}

// Of one rank of 27 whose blocks lie in device memory, by their number; 32 KiB each.
std::string lines_of_neighbors(const CollFacts& facts) {
    std::string text;
    for (const bool time_sliced : {false, true})
        for (const bool strided : {false, true})
            for (const std::uint64_t blocks : {1, 2, 4, 6, 26}) {
                CollQuestion asked = question(Collective::neighbor, blocks * 32 * kKiB,
                                              {"27 ranks of one node", 27, 1});
                asked.count = blocks;
                asked.memory = CollMemory::own_device;
                asked.node_segment = {
                    .there = true, .time_sliced = time_sliced, .strided = strided};
                const CollPlan plan = choose_collective(asked, facts, {}).plan;
                text += fmt::format("{:>2} {}{}  {}\n", blocks, strided ? "strided" : "contiguous",
                                    time_sliced ? ", time-sliced GPU" : "", name(plan.algorithm));
            }
    return text;
}

std::string table() {
    std::string text =
        "# Algorithms of collectives by scene; behind a comma another one, and from where.\n"
        "# Rewrite with GANTRY_GOLDEN_UPDATE=1 golden_tests; read the diff before committing it.\n";
    for (const char* machine : {"h200", "c2050-qdr"}) {
        Result<model::Machine> described = model::load(machine);
        GANTRY_ASSERT(described.ok());
        const CollFacts facts = coll_facts_of(*described);
        for (const Shape& shape : kShapes) {
            text += fmt::format("\n== {}: {} ==\n", machine, shape.name);
            for (int operation = 0; operation < kCollectives; ++operation)
                text += lines(static_cast<Collective>(operation), shape, facts, {.devices = true},
                              true);
        }
    }
    Result<model::Machine> ndr = model::load("h200");
    GANTRY_ASSERT(ndr.ok());
    ndr->network.device_memory = true;
    for (const Shape& shape :
         {Shape{"32 ranks on 4 nodes", 32, 4}, {"64 ranks on 8 nodes", 64, 8}}) {
        text += fmt::format("\n== h200, a card for each GPU: {}, known to be in device memory ==\n",
                            shape.name);
        for (const Collective operation : {Collective::bcast, Collective::reduce,
                                           Collective::allreduce, Collective::reduce_scatter})
            text += lines(operation, shape, coll_facts_of(*ndr), {.devices = true}, true,
                          CollMemory::device);
        text += lines(Collective::alltoall, shape, coll_facts_of(*ndr), {.devices = true}, true);
    }
    Result<model::Machine> h100 = model::load("h100");
    GANTRY_ASSERT(h100.ok());
    const CollFacts costs = coll_facts_of(*h100);
    const std::pair<CollMemory, const char*> memories[] = {
        {CollMemory::cells, "in host memory"},
        {CollMemory::host, "in host memory that all may read"},
        {CollMemory::device, "on devices"}};
    CollTuning reading;
    reading.reads = true;
    for (const auto& [memory, where] : memories)
        for (const Shape& shape : kShapes) {
            if (shape.nodes > 1) continue;
            text += fmt::format("\n== h100: {} that have met, {} ==\n", shape.name, where);
            for (int operation = 1; operation < kCollectives; ++operation)
                text +=
                    lines(static_cast<Collective>(operation), shape, costs, reading, true, memory);
        }
    for (const Shape& shape : kShapes) {
        if (shape.nodes > 1) continue;
        text +=
            fmt::format("\n== h100: {} that have a mailbox, in blocking calls ==\n", shape.name);
        for (int operation = 0; operation < kCollectives; ++operation)
            text += lines(static_cast<Collective>(operation), shape, costs, {}, true,
                          CollMemory::unknown, true);
    }
    text += "\n== h100: neighbors of one node, in device memory ==\n" + lines_of_neighbors(costs);
    const CollFacts facts;
    const Shape eight = {"8 nodes", 8, 8};
    const std::vector<Collective> reductions = {Collective::reduce, Collective::allreduce,
                                                Collective::reduce_scatter, Collective::scan};
    text += "\n== the operation does not commute: 8 nodes ==\n";
    for (const Collective operation : reductions)
        text += lines(operation, eight, facts, {}, false);
    text += "\n== GANTRY_REPRODUCIBLE=on: 8 nodes ==\n";
    for (const Collective operation : reductions)
        text += lines(operation, eight, facts, {.reproducible = true}, true);
    return text;
}

TEST(GoldenCollPlans, AreThoseOfTheTable) {
    expect_pinned(GANTRY_TEST_DATA "/coll_plans.txt", table());
}

}  // namespace
}  // namespace gantry::test
