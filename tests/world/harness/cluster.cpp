// SPDX-License-Identifier: BSD-3-Clause
#include "world/harness/cluster.hpp"

#include <algorithm>

namespace gantry::world {
namespace {

// Values that the kernels of apps/lbm read and write for a cell and step, in double precision: collide
// 53, stream 12, sum 8.
constexpr double kLbmBytes = 73 * 8;
// Those of apps/awp, in single precision: velocity 13, stress 17.
constexpr double kAwpBytes = 30 * 4;
// Operations of the original AWP-ODC for a cell and step, by its own count; it reached 143.8 Gflop/s on
// an M2090 (177 GB/s), and is bound by memory.
constexpr double kAwpOperations = 307, kAwpRate = 143.8e9, kM2090 = 177e9;

constexpr double by_memory(double bytes, double rate) {
    return bytes / rate * 1e9;
}
constexpr double original_awp(double peak) {
    return kAwpOperations / (kAwpRate * peak / kM2090) * 1e9;
}

void m2070(model::Machine& machine) {
    machine.name = "m2070-qdr";
    machine.gpu.name = "Tesla M2070";
    machine.gpu.memory = Bytes{6} << 30;
}

void ndr(model::Machine& machine) {
    machine.network.device_memory = true;
}

// Kernels that stream reach about 73 % of what the memory of a Fermi GPU could (with ECC): 144 GB/s of a
// C2050, 150 GB/s of an M2070. On an H200 apps/awp moved 1.94e12 bytes a second, measured.
constexpr double kC2050 = 0.73 * 144e9, kM2070 = 0.73 * 150e9, kH200 = 1.94e12;

}  // namespace

const std::vector<Cluster>& clusters() {
    static const std::vector<Cluster> all = {
        {"c2050-qdr", "a Tesla C2050 and QDR (3.1 GB/s) a node", "c2050-qdr", 1, kC2050,
         by_memory(kLbmBytes, kC2050), original_awp(144e9), nullptr},
        {"m2070-qdr", "a Tesla M2070 and QDR (3.1 GB/s) a node", "c2050-qdr", 1, kM2070,
         by_memory(kLbmBytes, kM2070), original_awp(150e9), &m2070},
        {"h200-ndr", "8 H200 a node, NVLink, 400 Gb/s for each with GPUDirect RDMA", "h200", 8,
         kH200, by_memory(kLbmBytes, kH200), by_memory(kAwpBytes, kH200), &ndr},
    };
    return all;
}

const Cluster* find_cluster(std::string_view name) {
    const auto found = std::ranges::find(clusters(), name, &Cluster::name);
    return found != clusters().end() ? &*found : nullptr;
}

model::Machine machine_of(const Cluster& cluster) {
    model::Machine machine = model::load(cluster.machine).value();
    if (cluster.change != nullptr) cluster.change(machine);
    return machine;
}

Options world_of(const Cluster& cluster, int ranks) {
    Options options;
    options.machine = cluster.machine;
    options.ranks = ranks;
    options.ranks_per_node = std::min(ranks, cluster.ranks_per_node);
    options.explain = false;
    options.turns = Turns::of_those_told;
    options.trace = false;
    options.mechanisms = "all";
    if (cluster.change != nullptr) options.change_machine = cluster.change;
    return options;
}

}  // namespace gantry::world
