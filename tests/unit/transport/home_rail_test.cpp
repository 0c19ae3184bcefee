// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ucx/home_rail.hpp"

#include "machine_tree.hpp"

#include <fmt/format.h>

namespace gantry::transport::ucx {
namespace {

constexpr Distance kSwitch{Nearness::same_switch, 2}, kNode{Nearness::same_node, 0},
    kFar{Nearness::other_node, 0}, kUnknown{};

std::vector<int> assign(const std::vector<Distances>& ranks) {
    return assign_home_rails(ranks);
}

// What the ranks of a node would tell each other, one for each GPU.
std::vector<Distances> from_each(const std::vector<std::string>& gpus,
                                 const std::vector<std::string>& cards, const std::string& sys) {
    std::vector<Distances> ranks;
    for (const std::string& gpu : gpus) {
        const Place place = standpoint_of({gpu, true}, sys).place;
        Distances& distances = ranks.emplace_back();
        for (const std::string& card : cards)
            distances.push_back(distance(place, place_of_card(card, sys)));
    }
    return ranks;
}

TEST(HomeRail, RanksTakeRailsInTurnWhereNothingIsKnown) {
    const Distances unknown(3, kUnknown);
    EXPECT_EQ(assign({7, unknown}), (std::vector<int>{0, 1, 2, 0, 1, 2, 0}));
}

TEST(HomeRail, TheNearestRailsAreSharedOut) {
    const Distances first{kNode, kFar, kNode, kFar}, second{kFar, kNode, kFar, kNode};
    EXPECT_EQ(assign({first, first, second, second}), (std::vector<int>{0, 2, 1, 3}));
    EXPECT_EQ(assign({first, second, first, second}), (std::vector<int>{0, 1, 2, 3}));
}

TEST(HomeRail, WhoHasAChoiceLeavesTheOnlyOneToOthers) {
    EXPECT_EQ(assign({{kNode, kNode}, {kSwitch, kNode}}), (std::vector<int>{1, 0}));
}

TEST(HomeRail, OnAMachineWithACardBesideEachGpuEveryRankTakesItsOwn) {
    // Four switches, two on each socket; below each two GPUs and two cards, each at a port of its own.
    MachineTree machine;
    std::vector<std::string> gpus, cards;
    for (int which = 0; which < 4; ++which) {
        const int bus = 0x10 + 0x20 * which;
        const std::string above =
            fmt::format("pci0000:{0:02x}/0000:{0:02x}:01.0/0000:{1:02x}:00.0", bus, bus + 1);
        for (int port = 0; port < 2; ++port) {
            gpus.push_back(fmt::format("0000:{:02x}:00.0", bus + 3 + port));
            machine.gpu(
                fmt::format("{}/0000:{:02x}:{:02x}.0/{}", above, bus + 2, port, gpus.back()),
                which / 2);
            cards.push_back(fmt::format("mlx5_{}", 2 * which + port));
            machine.card(fmt::format("{}/0000:{:02x}:{:02x}.0/0000:{:02x}:00.0", above, bus + 2,
                                     port + 2, bus + 5 + port),
                         which / 2, cards.back());
        }
    }
    const std::vector<Distances> ranks = from_each(gpus, cards, machine.sys);
    EXPECT_EQ(assign(ranks), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
    EXPECT_EQ(ranks[6][6].nearness, Nearness::same_switch);
    // Two ranks for each GPU, and ranks in any order.
    std::vector<Distances> twice(ranks.rbegin(), ranks.rend());
    twice.insert(twice.end(), ranks.begin(), ranks.end());
    const std::vector<int> homes = assign(twice);
    for (std::size_t rank = 0; rank < homes.size(); ++rank)
        EXPECT_EQ(twice[rank][static_cast<std::size_t>(homes[rank])].nearness,
                  Nearness::same_switch);
    for (int rail = 0; rail < 8; ++rail)
        EXPECT_EQ(std::ranges::count(homes, rail), 2) << rail;
}

std::vector<std::string> two_on_each_of_two_sockets(MachineTree& machine) {
    machine.gpu("pci0000:17/0000:17:00.0/0000:18:00.0", 0);
    machine.gpu("pci0000:3a/0000:3a:00.0/0000:3b:00.0", 0);
    machine.gpu("pci0000:85/0000:85:00.0/0000:86:00.0", 1);
    machine.gpu("pci0000:ae/0000:ae:00.0/0000:af:00.0", 1);
    return {"0000:18:00.0", "0000:3b:00.0", "0000:86:00.0", "0000:af:00.0"};
}

TEST(HomeRail, OnTwoSocketsWithACardEachGpusTakeThatOfTheirSocket) {
    MachineTree machine;
    const std::vector<std::string> gpus = two_on_each_of_two_sockets(machine);
    machine.card("pci0000:5d/0000:5d:00.0/0000:5e:00.0", 0, "mlx5_0");
    machine.card("pci0000:85/0000:85:02.0/0000:88:00.0", 1, "mlx5_1");
    const std::vector<Distances> ranks = from_each(gpus, {"mlx5_0", "mlx5_1"}, machine.sys);
    EXPECT_EQ(assign(ranks), (std::vector<int>{0, 0, 1, 1}));
    EXPECT_EQ(words(ranks[2][1], "GPU 0000:86:00.0"), "at one PCI root with GPU 0000:86:00.0");
    EXPECT_EQ(words(ranks[3][1], "GPU 0000:af:00.0"), "at the NUMA node of GPU 0000:af:00.0");
}

TEST(HomeRail, WhereCardsAreOnOneSocketThoseOfTheOtherShareThemOut) {
    MachineTree machine;
    const std::vector<std::string> gpus = two_on_each_of_two_sockets(machine);
    machine.card("pci0000:17/0000:17:02.0/0000:1a:00.0", 0, "mlx5_0");
    machine.card("pci0000:5d/0000:5d:00.0/0000:5e:00.0", 0, "mlx5_1");
    const std::vector<Distances> ranks = from_each(gpus, {"mlx5_0", "mlx5_1"}, machine.sys);
    // GPU 0 has one at its root; the others have both alike.
    EXPECT_EQ(assign(ranks), (std::vector<int>{0, 1, 0, 1}));
    EXPECT_EQ(words(ranks[3][1], "GPU 0000:af:00.0"), "at another NUMA node than GPU 0000:af:00.0");
}

TEST(HomeRail, ARankIsAtTheGpuThatItUses) {
    MachineTree machine;
    machine.own_processors(0);
    machine.gpu("pci0000:85/0000:85:00.0/0000:86:00.0", 1);
    machine.gpu("pci0000:17/0000:17:00.0/0000:18:00.0", 0);
    EXPECT_EQ(standpoint_of({"0000:86:00.0", true}, machine.sys).name, "GPU 0000:86:00.0");
    // One that is only expected gives way to processors that are elsewhere.
    EXPECT_EQ(standpoint_of({"0000:86:00.0", false}, machine.sys).name, "the rank's processors");
    EXPECT_EQ(standpoint_of({"0000:18:00.0", false}, machine.sys).name, "GPU 0000:18:00.0");
    // The simulated GPU is on no bus.
    EXPECT_EQ(standpoint_of({"0000:99:00.0", true}, machine.sys).place.numa_node, 0);
    EXPECT_EQ(standpoint_of({}, machine.sys).place.numa_node, 0);
}

TEST(HomeRail, DistancesTravelAsTheyAre) {
    const Distances distances{kSwitch, kFar, kUnknown, {Nearness::same_root, 255}};
    EXPECT_EQ(distances_from(to_bytes(distances), 4), distances);
    EXPECT_FALSE(distances_from(to_bytes(distances), 3));
    EXPECT_FALSE(distances_from("\x7f\x01", 1));
}

}  // namespace
}  // namespace gantry::transport::ucx
