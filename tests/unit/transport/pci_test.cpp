// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ucx/pci.hpp"

#include "machine_tree.hpp"

namespace gantry::transport::ucx {
namespace {

class Pci : public testing::Test {
  protected:
    Distance from_gpu(const char* gpu, const char* card) const {
        return distance(place_of_pci_device(gpu, machine.sys), place_of_card(card, machine.sys));
    }
    MachineTree machine;
};

TEST_F(Pci, ADeviceIsKnownByItsWayThroughTheMachine) {
    machine.gpu("pci0000:15/0000:15:01.0/0000:18:00.0", 1);
    const Place place = place_of_pci_device("0000:18:00.0", machine.sys);
    EXPECT_EQ(place.path, (std::vector<std::string>{"pci0000:15", "0000:15:01.0", "0000:18:00.0"}));
    EXPECT_EQ(place.numa_node, 1);
    machine.gpu("pci0000:ab/0000:ab:01.0/0000:ac:00.0", 0);
    EXPECT_EQ(place_of_pci_device("0000:AC:00.0", machine.sys).path.size(), 3u)
        << "the driver writes capitals";
    EXPECT_TRUE(place_of_pci_device("0000:99:00.0", machine.sys).path.empty());
}

TEST_F(Pci, ACardIsKnownByUcxsNameOfIt) {
    machine.card("pci0000:15/0000:15:01.0/0000:18:00.0", 0, "mlx5_0");
    machine.virtual_network("lo");
    EXPECT_EQ(place_of_card("rc_mlx5/mlx5_0:1", machine.sys).numa_node, 0);
    EXPECT_EQ(place_of_card("rc_mlx5/mlx5_0:1", machine.sys).path.back(), "0000:18:00.0");
    EXPECT_TRUE(place_of_card("tcp/lo", machine.sys).path.empty());
    EXPECT_EQ(place_of_card("tcp/lo", machine.sys).numa_node, -1);
}

TEST_F(Pci, TheProcessIsWhereItsProcessorsAre) {
    machine.own_processors(2);
    EXPECT_EQ(place_of_process(machine.sys).numa_node, 2);
    machine.own_processors(3);
    EXPECT_EQ(place_of_process(machine.sys).numa_node, -1) << "it may run on both";
}

TEST_F(Pci, DistancesGrowFromSwitchToRootToNodeToMachine) {
    machine.gpu("pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0", 0);
    machine.card("pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:19:00.0", 0, "beside");
    machine.card(
        "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:02.0/0000:1a:00.0/0000:1b:00.0/"
        "0000:1c:00.0",
        0, "below_another_switch");
    machine.card("pci0000:15/0000:15:02.0/0000:20:00.0", 0, "other_port");
    machine.card("pci0000:30/0000:30:01.0/0000:31:00.0", 0, "other_root");
    machine.card("pci0000:80/0000:80:01.0/0000:81:00.0", 1, "other_socket");
    machine.virtual_network("nowhere");
    const auto to = [this](const char* card) { return from_gpu("0000:18:00.0", card); };
    EXPECT_EQ(to("beside"), (Distance{Nearness::same_switch, 2}));
    EXPECT_EQ(to("below_another_switch"), (Distance{Nearness::same_switch, 4}));
    EXPECT_EQ(to("other_port").nearness, Nearness::same_root);
    EXPECT_EQ(to("other_root").nearness, Nearness::same_node);
    EXPECT_EQ(to("other_socket").nearness, Nearness::other_node);
    EXPECT_EQ(to("nowhere").nearness, Nearness::unknown);
    EXPECT_LT(to("beside"), to("below_another_switch"));
    EXPECT_LT(to("below_another_switch"), to("other_port"));
    EXPECT_LT(to("other_port"), to("other_root"));
    EXPECT_LT(to("other_root"), to("other_socket"));
    EXPECT_LT(to("other_socket"), to("nowhere"));
}

TEST_F(Pci, ProcessorsAreAtNoBridge) {
    machine.own_processors(1);
    machine.card("pci0000:15/0000:15:01.0/0000:18:00.0", 0, "far");
    machine.card("pci0000:80/0000:80:01.0/0000:81:00.0", 1, "near");
    const Place here = place_of_process(machine.sys);
    EXPECT_EQ(distance(here, place_of_card("near", machine.sys)).nearness, Nearness::same_node);
    EXPECT_EQ(distance(here, place_of_card("far", machine.sys)).nearness, Nearness::other_node);
}

}  // namespace
}  // namespace gantry::transport::ucx
