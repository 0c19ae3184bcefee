// SPDX-License-Identifier: BSD-3-Clause
#include "world/harness/collective_times.hpp"

#include "plan/coll_facts.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <sstream>

namespace gantry::world {
namespace {

constexpr int kTimes = 2;

struct Span {
    Nanoseconds first_start = std::numeric_limits<Nanoseconds>::max(), last_end = 0;
};

struct Setup {
    What what;
    CollectiveCase asked;
    Span spans[kTimes];
    std::uint64_t before = 0;
};

std::uint64_t envelopes(World& world) {
    return world.network().messages() + world.shared_memory().messages();
}

Task<Status> several(Rank& rank, Setup& setup) {
    std::vector<int> members(static_cast<std::size_t>(rank.world.ranks()));
    std::iota(members.begin(), members.end(), 0);
    const CollectiveCase& asked = setup.asked;
    Communicator all(rank, 77, members, asked.fixed);
    all.tuning().leaders = asked.leaders;
    all.tuning().segment = asked.segment;
    Operation operation(rank, all, setup.what);
    for (int n = 0; n < asked.warm_ups + kTimes; ++n) {
        operation.fill(n);
        const int timed = n - asked.warm_ups;
        if (timed == 0 || (timed > 0 && asked.calls == Calls::apart)) {
            Status met = co_await meet(rank, 9 + timed);
            GANTRY_CO_TRY(met);
            if (rank.number == 0 && timed == 0) setup.before = envelopes(rank.world);
        }
        const Nanoseconds start = rank.processor.now();
        Status done = co_await all.with_what_follows(operation.run(rank.executor, all.blocking()));
        GANTRY_CO_TRY(done);
        if (timed >= 0) {
            Span& span = setup.spans[timed];
            span.first_start = std::min(span.first_start, start);
            span.last_end = std::max(span.last_end, rank.processor.now());
        }
        WORLD_CHECK(operation.is_right());
    }
    co_return success();
}

Nanoseconds time_of(const Setup& setup) {
    Nanoseconds all = 0;
    for (const Span& span : setup.spans)
        all += span.last_end - span.first_start;
    if (setup.asked.calls == Calls::in_a_row)
        all = setup.spans[kTimes - 1].last_end - setup.spans[0].first_start;
    return all / kTimes;
}

plan::Collective operation_of(Kind kind) {
    switch (kind) {
        case Kind::barrier: return plan::Collective::barrier;
        case Kind::bcast: return plan::Collective::bcast;
        case Kind::reduce: return plan::Collective::reduce;
        case Kind::allreduce: return plan::Collective::allreduce;
        case Kind::reduce_scatter: return plan::Collective::reduce_scatter;
        case Kind::scan:
        case Kind::exscan: return plan::Collective::scan;
        case Kind::allgather: return plan::Collective::allgather;
        case Kind::allgatherv: return plan::Collective::allgatherv;
        case Kind::alltoall: return plan::Collective::alltoall;
        case Kind::alltoallv: return plan::Collective::alltoallv;
        case Kind::gather: return plan::Collective::gather;
        case Kind::gatherv: return plan::Collective::gatherv;
        case Kind::scatter: return plan::Collective::scatter;
        case Kind::scatterv: return plan::Collective::scatterv;
        case Kind::neighbors: return plan::Collective::neighbor;
    }
    return plan::Collective::neighbor;
}

// Whose memory ranks of several nodes tell each other.
bool is_told(plan::Collective operation) {
    return operation == plan::Collective::bcast || operation == plan::Collective::reduce ||
           operation == plan::Collective::allreduce ||
           operation == plan::Collective::reduce_scatter || operation == plan::Collective::scan;
}

// Blocks that harness/collectives.cpp makes of `count` numbers each: all together, as a rank's own number
// modulo 3 says.
std::size_t unequal_blocks(int ranks) {
    std::size_t blocks = 0;
    for (int rank = 0; rank < ranks; ++rank)
        blocks += static_cast<std::size_t>(rank % 3);
    return blocks;
}

}  // namespace

CollectiveTime measure_collective(const Cluster& cluster, int ranks, const CollectiveCase& asked) {
    Setup setup;
    setup.what.kind = asked.kind;
    setup.what.count = asked.bytes / sizeof(std::int64_t);
    setup.what.gpus = machine_of(cluster).gpus_per_node;
    setup.what.places.assign(static_cast<std::size_t>(ranks), {asked.place, asked.place});
    setup.asked = asked;
    World world(world_of(cluster, ranks));
    const Ending ending = world.run([&setup](Rank& rank) { return several(rank, setup); });
    if (!ending.good()) {
        std::ostringstream story;
        story << ending;
        std::fprintf(stderr, "the world of %s on %d ranks: %s\n", describe(setup.what).c_str(),
                     ranks, story.str().c_str());
        std::abort();
    }
    CollectiveTime result;
    result.time = time_of(setup);
    result.envelopes =
        static_cast<double>(envelopes(world) - setup.before) / (1.0 * ranks * kTimes);
    return result;
}

plan::CollChoice choice_of(const Cluster& cluster, int ranks, const CollectiveCase& asked) {
    const Options options = world_of(cluster, ranks);
    plan::CollQuestion question{.operation = operation_of(asked.kind), .bytes = asked.bytes};
    if (asked.kind == Kind::reduce_scatter || asked.kind == Kind::allgatherv)
        question.bytes *= unequal_blocks(ranks);
    question.count = question.bytes / sizeof(std::int64_t);
    question.shape = {.ranks = ranks,
                      .nodes = ranks / options.ranks_per_node,
                      .most = options.ranks_per_node,
                      .fewest = options.ranks_per_node,
                      .in_order = true};
    question.node_segment.there = question.shape.nodes == 1;
    const bool several_on_nodes = question.shape.nodes > 1 && options.ranks_per_node > 1;
    if (asked.place == Place::device &&
        (question.node_segment.there || (several_on_nodes && is_told(question.operation))))
        question.memory = plan::CollMemory::device;
    config::Config config;
    config.mechanisms = options.mechanisms;
    config.idle_timeout = 0;  // as the ranks of a world have it
    if (options.change_config) options.change_config(config);
    plan::CollTuning tuning = plan::coll_tuning_from(config);
    tuning.fixed.fill(asked.fixed);
    tuning.leaders = asked.leaders;
    tuning.segment = asked.segment;
    return plan::choose_collective(question, plan::coll_facts_of(machine_of(cluster)), tuning);
}

}  // namespace gantry::world
