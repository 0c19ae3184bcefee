// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ucx/port_state.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace gantry::transport::ucx {
namespace {

TEST(PortState, TheSystemSaysWhetherAPortWorks) {
    namespace fs = std::filesystem;
    std::string name = (fs::temp_directory_path() / "gantry-sys-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    const auto says = [&name](const char* device, const char* port, const char* state) {
        const fs::path folder = fs::path(name) / "class/infiniband" / device / "ports" / port;
        fs::create_directories(folder);
        std::ofstream(folder / "state") << state << "\n";
    };
    says("mlx5_0", "1", "4: ACTIVE");
    says("mlx5_0", "2", "1: DOWN");
    EXPECT_TRUE(port_is_active("rc_mlx5/mlx5_0:1", name));
    EXPECT_FALSE(port_is_active("rc_mlx5/mlx5_0:2", name));
    EXPECT_TRUE(port_is_active("rc_mlx5/mlx5_1:1", name)) << "nobody says that it does not work";
    EXPECT_TRUE(port_is_active("tcp/eth0", name));
    fs::remove_all(name);
}

}  // namespace
}  // namespace gantry::transport::ucx
