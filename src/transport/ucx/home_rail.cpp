// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ucx/home_rail.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace gantry::transport::ucx {
namespace {

std::vector<std::size_t> nearest_rails(const Distances& distances) {
    const Distance least = *std::ranges::min_element(distances);
    std::vector<std::size_t> nearest;
    for (std::size_t rail = 0; rail < distances.size(); ++rail)
        if (distances[rail] == least) nearest.push_back(rail);
    return nearest;
}

}  // namespace

// Ranks with the smallest choice first: who has more rails to choose from takes those that are left.
std::vector<int> assign_home_rails(std::span<const Distances> ranks) {
    std::vector<std::vector<std::size_t>> choices;
    for (const Distances& distances : ranks)
        choices.push_back(nearest_rails(distances));
    std::vector<std::size_t> turns(ranks.size());
    std::iota(turns.begin(), turns.end(), std::size_t{0});
    std::ranges::stable_sort(turns, {},
                             [&choices](std::size_t rank) { return choices[rank].size(); });
    std::vector<int> homes(ranks.size());
    std::vector<int> taken(ranks.empty() ? 0 : ranks.front().size());
    for (const std::size_t rank : turns) {
        const std::size_t home = *std::ranges::min_element(
            choices[rank], {}, [&taken](std::size_t rail) { return taken[rail]; });
        ++taken[home];
        homes[rank] = static_cast<int>(home);
    }
    return homes;
}

// Which GPU a rank will use is only expected before it does; what it is bound to is a fact. Where they
// contradict each other, the fact counts.
Standpoint standpoint_of(const RankGpu& gpu, const std::string& sys) {
    const Standpoint process{place_of_process(sys), "the rank's processors"};
    if (gpu.pci_address.empty()) return process;
    Standpoint of_gpu{place_of_pci_device(gpu.pci_address, sys), "GPU " + gpu.pci_address};
    const bool there = !of_gpu.place.path.empty() || of_gpu.place.numa_node >= 0;
    const bool contradicted = !gpu.in_use && process.place.numa_node >= 0 &&
                              of_gpu.place.numa_node >= 0 &&
                              process.place.numa_node != of_gpu.place.numa_node;
    return there && !contradicted ? of_gpu : process;
}

Distances distances_to(const std::vector<Rail>& rails, const Place& from, const std::string& sys) {
    Distances distances;
    for (const Rail& rail : rails) {
        const std::vector<std::string> devices = rail.devices();
        distances.push_back(devices.empty() ? Distance{}
                                            : distance(from, place_of_card(devices.front(), sys)));
    }
    return distances;
}

std::string to_bytes(const Distances& distances) {
    std::string bytes;
    for (const Distance& distance : distances) {
        bytes += static_cast<char>(distance.nearness);
        bytes += static_cast<char>(distance.bridges);
    }
    return bytes;
}

std::optional<Distances> distances_from(std::string_view bytes, std::size_t rails) {
    if (bytes.size() != 2 * rails) return std::nullopt;
    Distances distances;
    for (std::size_t at = 0; at < bytes.size(); at += 2) {
        const auto nearness = static_cast<std::uint8_t>(bytes[at]);
        if (nearness > static_cast<std::uint8_t>(Nearness::unknown)) return std::nullopt;
        distances.push_back(
            {static_cast<Nearness>(nearness), static_cast<std::uint8_t>(bytes[at + 1])});
    }
    return distances;
}

}  // namespace gantry::transport::ucx
