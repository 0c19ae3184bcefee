// SPDX-License-Identifier: BSD-3-Clause
#include "world/harness/collective_times.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <sstream>

namespace gantry::world {
namespace {

constexpr int kWarmUps = 2, kTimes = 2;

struct Setup {
    What what;
    Nanoseconds first_start = std::numeric_limits<Nanoseconds>::max(), last_end = 0;
    std::uint64_t before = 0;
};

std::uint64_t envelopes(World& world) {
    return world.network().messages() + world.shared_memory().messages();
}

Task<Status> several(Rank& rank, Setup& setup) {
    std::vector<int> members(static_cast<std::size_t>(rank.world.ranks()));
    std::iota(members.begin(), members.end(), 0);
    Communicator all(rank, 77, members, plan::Algorithm::automatic);
    Operation operation(rank, all, setup.what);
    for (int n = 0; n < kWarmUps + kTimes; ++n) {
        operation.fill(n);
        if (n == kWarmUps) {
            Status met = co_await meet(rank, 9);
            GANTRY_CO_TRY(met);
            if (rank.number == 0) setup.before = envelopes(rank.world);
            setup.first_start = std::min(setup.first_start, rank.processor.now());
        }
        Status done = co_await operation.run(rank.executor, all.blocking());
        GANTRY_CO_TRY(done);
        WORLD_CHECK(operation.is_right());
    }
    setup.last_end = std::max(setup.last_end, rank.processor.now());
    co_return success();
}

}  // namespace

CollectiveTime measure_collective(const Cluster& cluster, int ranks, Kind kind, Bytes bytes) {
    Setup setup;
    setup.what.kind = kind;
    setup.what.count = bytes / sizeof(std::int64_t);
    setup.what.gpus = machine_of(cluster).gpus_per_node;
    setup.what.places.assign(static_cast<std::size_t>(ranks), {Place::device, Place::device});
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
    result.time = (setup.last_end - setup.first_start) / kTimes;
    result.envelopes =
        static_cast<double>(envelopes(world) - setup.before) / (1.0 * ranks * kTimes);
    return result;
}

}  // namespace gantry::world
