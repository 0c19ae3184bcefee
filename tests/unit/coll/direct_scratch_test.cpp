// SPDX-License-Identifier: BSD-3-Clause
//
// Strided blocks of ranks of one node: packed on the GPU, stored straight into the peers' memory, and
// unpacked there, without a message.
#include "algorithms.hpp"

namespace gantry::coll {
namespace {

using plan::Collective;

std::uint64_t messages_for(const Setting& setting, int ranks, std::uint64_t seed) {
    int wrong = 0;
    Setting counted = setting;
    counted.wrong = &wrong;
    world::Options options;
    options.machine = "h200";
    options.ranks = ranks;
    options.ranks_per_node = ranks;
    options.seed = seed;
    options.jitter = 20 * kMicrosecond;
    options.change_machine = [](model::Machine& machine) { machine.gpu.turn = 0; };
    world::World world(options);
    const world::Ending ending =
        world.run([counted](Rank& rank) { return once(rank.executor, rank, counted); });
    EXPECT_TRUE(ending.good()) << ranks << " ranks: " << text(setting) << ": " << ending;
    EXPECT_TRUE(world.settle()) << ranks << " ranks: " << text(setting) << ": something is left";
    return messages_of(world);
}

TEST(StridedBlocks, GoOverTheNodeSegmentInDeviceMemory) {
    for (const Collective operation :
         {Collective::bcast, Collective::allgather, Collective::allgatherv, Collective::alltoall,
          Collective::alltoallv, Collective::gather, Collective::scatter})
        for (const int ranks : {2, 3, 6})
            for (const std::size_t count : {1, 300})
                EXPECT_EQ(messages_for({.operation = operation,
                                        .algorithm = plan::Algorithm::direct,
                                        .count = count,
                                        .place = Place::device,
                                        .form = Form::gaps,
                                        .root = 1},
                                       ranks, static_cast<std::uint64_t>(ranks)),
                          0u)
                    << name(operation) << ", " << ranks << " ranks, " << count;
}

}  // namespace
}  // namespace gantry::coll
