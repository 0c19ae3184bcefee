// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ucx/home_rail.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace gantry::transport::ucx {
namespace {

TEST(HomeRail, RanksOfANodeTakeTheRailsInTurn) {
    const int unknown[] = {-1, -1, -1};
    for (int rank = 0; rank < 7; ++rank)
        EXPECT_EQ(choose_home_rail(unknown, -1, rank), rank % 3);
}

TEST(HomeRail, TheNearestRailsComeFirst) {
    const int nodes[] = {0, 1, 0, 1};
    EXPECT_EQ(choose_home_rail(nodes, 0, 0), 0);
    EXPECT_EQ(choose_home_rail(nodes, 0, 1), 2);
    EXPECT_EQ(choose_home_rail(nodes, 1, 2), 1);
    EXPECT_EQ(choose_home_rail(nodes, 1, 3), 3);
    // No card is at that node.
    EXPECT_EQ(choose_home_rail(nodes, 5, 3), 3);
}

TEST(HomeRail, TheSystemSaysWhereACardIs) {
    namespace fs = std::filesystem;
    std::string name = (fs::temp_directory_path() / "gantry-sys-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    const auto card = [&name](const char* kind, const char* device, int node) {
        const fs::path folder = fs::path(name) / "class" / kind / device / "device";
        fs::create_directories(folder);
        std::ofstream(folder / "numa_node") << node << "\n";
    };
    card("net", "eth0", 1);
    card("infiniband", "mlx5_0", 0);
    EXPECT_EQ(numa_node_of("tcp/eth0", name), 1);
    EXPECT_EQ(numa_node_of("rc_mlx5/mlx5_0:1", name), 0);
    EXPECT_EQ(numa_node_of("tcp/lo", name), -1);
    // All processors that this process may use are at node 2.
    cpu_set_t own;
    ASSERT_EQ(sched_getaffinity(0, sizeof own, &own), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &own))
            fs::create_directories(fs::path(name) / "devices/system/node/node2" /
                                   ("cpu" + std::to_string(cpu)));
    EXPECT_EQ(own_numa_node(name), 2);
    fs::remove_all(name);
}

}  // namespace
}  // namespace gantry::transport::ucx
