// SPDX-License-Identifier: BSD-3-Clause
#include "world/harness/published_rails.hpp"

#include "world/harness/programs.hpp"

#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace gantry::world {
namespace {

enum class Directions : std::uint8_t { one, both };

Task<Status> stream(Rank& rank, int messages, Bytes bytes, Directions directions) {
    Bytebuffer out(rank, Place::host, bytes), in(rank, Place::host, bytes);
    out.fill(static_cast<std::uint64_t>(rank.number));
    const int peer = 1 - rank.number;
    const bool receives = rank.number == 1 || directions == Directions::both;
    const bool sends = rank.number == 0 || directions == Directions::both;
    for (int i = 0; i < messages; ++i) {
        std::vector<Result<p2p::Request*>> requests;
        if (receives) requests.push_back(rank.messenger.ireceive(rank.all, in.whole(), peer, i));
        if (sends)
            requests.push_back(
                rank.messenger.isend(rank.all, out.whole(), peer, i, p2p::SendMode::standard));
        for (Result<p2p::Request*>& request : requests) {
            Received ended = co_await finish(rank.executor, rank, std::move(request));
            GANTRY_CO_TRY(ended.status);
        }
    }
    if (receives) WORLD_CHECK(in.holds(static_cast<std::uint64_t>(peer), bytes));
    co_return success();
}

// `cap`: of all rails of a rank, in and out, relative to one rail; 0: none.
double time_of(int rails, double cap, int messages, Bytes bytes, Directions directions) {
    World world({.machine = "c2050-qdr", .change_machine = [rails, cap](model::Machine& machine) {
                     machine.network.rails = rails;
                     machine.network.shared_cap = cap * machine.network.rate.peak();
                 }});
    const Ending ending =
        world.run([=](Rank& rank) { return stream(rank, messages, bytes, directions); });
    if (!ending.good()) {
        std::ostringstream story;
        story << ending;
        std::fprintf(stderr, "the world of the published rails: %s\n", story.str().c_str());
        std::abort();
    }
    return static_cast<double>(ending.time);
}

double by_two_of_one(double cap, int messages, Bytes bytes, Directions directions) {
    return time_of(1, cap, messages, bytes, directions) /
           time_of(2, cap, messages, bytes, directions);
}

}  // namespace

PublishedRails measure_rails() {
    PublishedRails rails;
    // One port both ways together is twice a rail, which is less than the bus carries.
    rails.two_ports_both_ways = by_two_of_one(2 * kPublishedPorts, 8, 16 * kMiB, Directions::both);
    rails.two_adapters_bandwidth = by_two_of_one(0, 1, 64 * kMiB, Directions::one);
    rails.two_adapters_latency = 1 / by_two_of_one(0, 1, 4 * kMiB, Directions::one);
    return rails;
}

}  // namespace gantry::world
