// SPDX-License-Identifier: BSD-3-Clause
//
// A sysfs of a machine that is not this one: folders and links as the kernel makes them.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace gantry::transport::ucx {

class MachineTree {
  public:
    MachineTree() {
        EXPECT_NE(mkdtemp(sys.data()), nullptr);
        for (const char* folder : {"bus/pci/devices", "class/net", "class/infiniband"})
            std::filesystem::create_directories(at(folder));
    }
    ~MachineTree() { std::filesystem::remove_all(sys); }
    MachineTree(const MachineTree&) = delete;
    MachineTree& operator=(const MachineTree&) = delete;

    // `way`: from the root complex to the device, "pci0000:15/0000:15:01.0/0000:18:00.0".
    void gpu(const std::string& way, int numa_node) { add(way, numa_node); }
    // The device of the RDMA card `name`.
    void card(const std::string& way, int numa_node, const std::string& name) {
        const std::filesystem::path device = add(way, numa_node);
        std::filesystem::create_directories(device / "infiniband" / name);
        std::filesystem::create_directories(at("class/infiniband/" + name));
        std::filesystem::create_directory_symlink(device,
                                                  at("class/infiniband/" + name + "/device"));
    }
    // Like a pair of virtual cables or a loopback: no device is behind it.
    void virtual_network(const std::string& name) {
        std::filesystem::create_directories(at("class/net/" + name));
    }
    // All processors that this process may use are at that node.
    void own_processors(int numa_node) {
        cpu_set_t own;
        ASSERT_EQ(sched_getaffinity(0, sizeof own, &own), 0);
        for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
            if (CPU_ISSET(cpu, &own))
                std::filesystem::create_directories(at("devices/system/node/node" +
                                                       std::to_string(numa_node) + "/cpu" +
                                                       std::to_string(cpu)));
    }

    std::string sys = (std::filesystem::temp_directory_path() / "gantry-sys-XXXXXX").string();

  private:
    std::filesystem::path at(const std::string& path) const {
        return std::filesystem::path(sys) / path;
    }
    std::filesystem::path add(const std::string& way, int numa_node) {
        const std::filesystem::path device = at("devices/" + way);
        std::filesystem::create_directories(device);
        std::ofstream(device / "numa_node") << numa_node << "\n";
        std::filesystem::create_directory_symlink(
            device, at("bus/pci/devices/" + device.filename().string()));
        return device;
    }
};

}  // namespace gantry::transport::ucx
