// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ucx/pci.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>

namespace gantry::transport::ucx {
namespace {

namespace fs = std::filesystem;

constexpr int kMostNodes = 64;

// Of the folder of a device, or a link to it.
Place place_of_folder(const fs::path& folder) {
    Place place;
    if (std::ifstream file(folder / "numa_node"); !(file >> place.numa_node)) place.numa_node = -1;
    std::error_code refused;
    const fs::path real = fs::canonical(folder, refused);
    if (refused) return place;
    bool below_a_root = false;
    for (const fs::path& part : real) {
        below_a_root = below_a_root || part.string().starts_with("pci");
        if (below_a_root) place.path.push_back(part.string());
    }
    return place;
}

}  // namespace

Place place_of_pci_device(std::string_view address, const std::string& sys) {
    std::string name(address);
    std::ranges::transform(name, name.begin(), [](unsigned char letter) {
        return static_cast<char>(std::tolower(letter));
    });
    return place_of_folder(fs::path(sys) / "bus/pci/devices" / name);
}

Place place_of_card(std::string_view resource, const std::string& sys) {
    std::string_view name = resource.substr(resource.rfind('/') + 1);
    name = name.substr(0, name.find(':'));
    for (const char* kind : {"net", "infiniband"}) {
        const fs::path folder = fs::path(sys) / "class" / kind / name / "device";
        std::error_code refused;
        if (fs::exists(folder, refused)) return place_of_folder(folder);
    }
    return {};
}

Place place_of_process(const std::string& sys) {
    cpu_set_t processors;
    if (sched_getaffinity(0, sizeof processors, &processors) != 0) return {};
    Place place;
    for (int node = 0; node < kMostNodes; ++node) {
        const std::string folder = fmt::format("{}/devices/system/node/node{}", sys, node);
        bool runs_there = false;
        std::error_code refused;
        for (int cpu = 0; cpu < CPU_SETSIZE && !runs_there; ++cpu)
            runs_there = CPU_ISSET(cpu, &processors) != 0 &&
                         fs::exists(fmt::format("{}/cpu{}", folder, cpu), refused);
        if (!runs_there) continue;
        if (place.numa_node >= 0) return {};  // it may run on several
        place.numa_node = node;
    }
    return place;
}

Distance distance(const Place& one, const Place& other) {
    const auto [end, end_of_other] = std::ranges::mismatch(one.path, other.path);
    const auto shared = end - one.path.begin();
    const auto apart = (one.path.end() - end) + (other.path.end() - end_of_other);
    // The two devices are no bridges themselves.
    const auto bridges = static_cast<std::uint8_t>(std::clamp<std::ptrdiff_t>(apart - 2, 0, 255));
    if (shared >= 2) return {Nearness::same_switch, bridges};
    if (shared == 1) return {Nearness::same_root, bridges};
    if (one.numa_node < 0 || other.numa_node < 0) return {};
    return {one.numa_node == other.numa_node ? Nearness::same_node : Nearness::other_node, 0};
}

std::string words(Distance distance, std::string_view of) {
    switch (distance.nearness) {
        case Nearness::same_switch: return fmt::format("under one PCI switch with {}", of);
        case Nearness::same_root: return fmt::format("at one PCI root with {}", of);
        case Nearness::same_node: return fmt::format("at the NUMA node of {}", of);
        case Nearness::other_node: return fmt::format("at another NUMA node than {}", of);
        case Nearness::unknown: break;
    }
    return fmt::format("how far it is from {}, the system does not say", of);
}

}  // namespace gantry::transport::ucx
