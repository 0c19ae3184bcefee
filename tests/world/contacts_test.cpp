// SPDX-License-Identifier: BSD-3-Clause
//
// When nobody tells of deaths any more: each rank speaks once to all ranks of other nodes.
#include "faults/contacts.hpp"
#include "world/harness/programs.hpp"

#include <memory>
#include <vector>

namespace gantry::world {
namespace {

constexpr int kRanks = 6, kUnreachable = 5;

Task<Status> make_contact(Rank& rank, faults::Contacts& contacts, int times) {
    for (int i = 0; i < times; ++i)
        contacts.make(rank.all.peers);
    Status slept = co_await rank.sleep(rank.executor, kMillisecond);
    co_return slept;
}

TEST(Contacts, AreMadeOnceAndOfOtherNodes) {
    std::vector<int> sent(kRanks), in_node(kRanks);
    Options options{.ranks = kRanks, .ranks_per_node = 2};
    options.on_send = [&](int from, transport::MessageKind kind) {
        EXPECT_EQ(kind, faults::wire::kContact);
        ++sent[static_cast<std::size_t>(from)];
        return from == kUnreachable ? failure(MPI_ERR_OTHER, "no way") : success();
    };
    options.on_send_in_node = [&](int from, transport::MessageKind) {
        ++in_node[static_cast<std::size_t>(from)];
        return success();
    };
    World world(options);
    std::vector<std::unique_ptr<faults::Contacts>> contacts;
    for (int rank = 0; rank < kRanks; ++rank)
        contacts.push_back(std::make_unique<faults::Contacts>(world.rank(rank).transfer));
    const Ending ending = world.run([&](Rank& rank) {
        return make_contact(rank, *contacts[static_cast<std::size_t>(rank.number)], 2);
    });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_EQ(sent, std::vector<int>(kRanks, kRanks - 2));
    EXPECT_EQ(in_node, std::vector<int>(kRanks, 0)) << "who shares a node looks at the process";
    EXPECT_TRUE(world.settle());
    for (int rank = 0; rank < kRanks; ++rank)
        EXPECT_EQ(world.rank(rank).messenger.losses().size(), rank == kUnreachable ? 4u : 0u)
            << "of rank " << rank;
}

}  // namespace
}  // namespace gantry::world
