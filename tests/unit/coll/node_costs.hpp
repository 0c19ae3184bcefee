// SPDX-License-Identifier: BSD-3-Clause
//
// Runs a program on the ranks of one node, and says what it cost there.
#pragma once

#include "collective_world.hpp"

#include <algorithm>
#include <functional>
#include <string>

namespace gantry::coll {

// What the devices of all ranks counted, and messages.
struct NodeCosts {
    std::uint64_t launches = 0, most_of_a_rank = 0, reductions = 0, reduced = 0, staged = 0,
                  unstaged = 0, messages = 0;
    Bytes read = 0;  // of host memory of other ranks
};

// `about` is said where something goes wrong. Seeds above 1 bring jitter.
inline NodeCosts costs_on_node(
    int ranks, std::uint64_t seed, const world::Program& program, const std::string& about,
    const std::function<void(world::Options&)>& change = [](world::Options&) {}) {
    using model::Operation;
    NodeCosts costs;
    world::Options options{.machine = "h200",
                           .ranks = ranks,
                           .ranks_per_node = ranks,
                           .seed = seed,
                           .jitter = seed > 1 ? 20 * kMicrosecond : 0};
    change(options);
    world::World world(options);
    const world::Ending ending = world.run(program);
    EXPECT_TRUE(ending.good()) << ranks << " ranks, " << about << ": " << ending;
    EXPECT_TRUE(world.settle()) << ranks << " ranks, " << about << ", seed " << seed;
    for (int rank = 0; rank < ranks; ++rank) {
        const device::fake::Counts& counts = world.rank(rank).device.counts();
        const auto copies = [&](Operation operation) {
            return counts.copies[static_cast<int>(operation)];
        };
        costs.launches += counts.launches;
        costs.most_of_a_rank = std::max(costs.most_of_a_rank, counts.launches);
        costs.reductions += counts.reductions;
        costs.reduced += counts.reduced;
        costs.staged += copies(Operation::d2h) + copies(Operation::pageable_d2h);
        costs.unstaged += copies(Operation::h2d) + copies(Operation::pageable_h2d);
    }
    std::uint64_t reads = 0;
    for (const transport::fake::TraceRow& row : world.shared_memory().trace()) {
        if (row.kind != transport::fake::kRead) continue;
        ++reads;
        costs.read += row.payload_bytes;
    }
    costs.messages = messages_of(world) - reads;
    return costs;
}

}  // namespace gantry::coll
