// SPDX-License-Identifier: BSD-3-Clause
//
// Where cards, GPUs and processors are in a machine, as sysfs tells, and how far one is from another.
// A PCI device's folder is its way through the machine, from the root complex down:
//
//   /sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:02.0/0000:19:00.0
//                root        root port    switch       its port     the device
//
// Two devices are as near as the first bridge that their folders share is deep. `sys` is always the
// folder of sysfs ("/sys"; in tests a tree of a machine).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::transport::ucx {

struct Place {
    std::vector<std::string> path;  // from the root complex to the device; empty: no PCI device
    int numa_node = -1;             // -1: unknown
};

// Of a PCI device ("0000:18:00.0", in either case of letters).
Place place_of_pci_device(std::string_view address, const std::string& sys);
// Of the card behind a device as UCX names it (tcp/eth0, rc_mlx5/mlx5_0:1).
Place place_of_card(std::string_view resource, const std::string& sys);
// Of this process: the only NUMA node on whose processors it may run, if there is one.
Place place_of_process(const std::string& sys);

// From near to far; `unknown` where the system does not say.
enum class Nearness : std::uint8_t { same_switch, same_root, same_node, other_node, unknown };

// Ordered: the nearer one first. It travels between the ranks of a node as these two bytes.
struct Distance {
    Nearness nearness = Nearness::unknown;
    std::uint8_t bridges = 0;  // between both, within a switch or a root complex
    auto operator<=>(const Distance&) const = default;
};

Distance distance(const Place& one, const Place& other);
// "under one PCI switch with GPU 0000:18:00.0", for example.
std::string words(Distance distance, std::string_view of);

}  // namespace gantry::transport::ucx
