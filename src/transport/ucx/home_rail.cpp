// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ucx/home_rail.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace gantry::transport::ucx {
namespace {

constexpr int kMostNodes = 64;

}  // namespace

int choose_home_rail(std::span<const int> nodes, int own, int local_rank) {
    std::vector<int> near, all;
    for (int rail = 0; rail < static_cast<int>(nodes.size()); ++rail) {
        all.push_back(rail);
        if (own >= 0 && nodes[static_cast<std::size_t>(rail)] == own) near.push_back(rail);
    }
    const std::vector<int>& candidates = near.empty() ? all : near;
    if (candidates.empty()) return 0;
    return candidates[static_cast<std::size_t>(std::max(local_rank, 0)) % candidates.size()];
}

int numa_node_of(std::string resource, const std::string& sys) {
    resource = resource.substr(resource.rfind('/') + 1);
    resource = resource.substr(0, resource.find(':'));
    for (const char* kind : {"net", "infiniband"}) {
        std::ifstream file(fmt::format("{}/class/{}/{}/device/numa_node", sys, kind, resource));
        int node = -1;
        if (file >> node) return node;
    }
    return -1;
}

int numa_node_of(const Rail& rail, const std::string& sys) {
    const std::vector<std::string> devices = rail.devices();
    return devices.empty() ? -1 : numa_node_of(devices.front(), sys);
}

int own_numa_node(const std::string& sys) {
    cpu_set_t processors;
    if (sched_getaffinity(0, sizeof processors, &processors) != 0) return -1;
    int only = -1;
    for (int node = 0; node < kMostNodes; ++node) {
        const std::string folder = fmt::format("{}/devices/system/node/node{}", sys, node);
        bool runs_there = false;
        for (int cpu = 0; cpu < CPU_SETSIZE && !runs_there; ++cpu)
            runs_there = CPU_ISSET(cpu, &processors) != 0 &&
                         std::filesystem::exists(fmt::format("{}/cpu{}", folder, cpu));
        if (!runs_there) continue;
        if (only >= 0) return -1;
        only = node;
    }
    return only;
}

int find_home_rail(const std::vector<Rail>& rails, int local_rank) {
    if (rails.size() < 2) return 0;
    std::vector<int> nodes;
    for (const Rail& rail : rails)
        nodes.push_back(numa_node_of(rail, "/sys"));
    return choose_home_rail(nodes, own_numa_node("/sys"), local_rank);
}

}  // namespace gantry::transport::ucx
