// SPDX-License-Identifier: BSD-3-Clause
#include "model/estimate.hpp"

#include "model/tuned.hpp"

#include <algorithm>
#include <vector>

namespace gantry::model {
namespace {

// Raw rates of an H200, in bytes per second: 6144 bits at twice 3.2 GHz, PCIe 5 with 16 lanes,
// 18 links of 25 GB/s.
constexpr double kMeasuredMemory = 4.92e12, kMeasuredHostLink = 63e9, kMeasuredPeerLink = 450e9;

// What the makers say of each generation, from this compute capability on: 16 lanes of PCI Express,
// and all links of NVLink (of the V100 those that two GPUs of eight have in common).
struct Generation {
    int compute_capability;  // 10 * major + minor
    double host_link, peer_link;
};
constexpr Generation kGenerations[] = {
    {120, 63e9, 0},       // RTX 50, RTX PRO
    {100, 63e9, 900e9},   // B100, B200
    {90, 63e9, 450e9},    // H100, H200
    {86, 31.5e9, 56e9},   // A40, RTX 30, RTX 40
    {80, 31.5e9, 300e9},  // A100
    {70, 15.75e9, 50e9},  // V100, T4
    {0, 15.75e9, 40e9},   // P100 and older
};

const Generation& generation_of(const Traits& traits) {
    const int capability = 10 * traits.compute_major + traits.compute_minor;
    return *std::find_if(
        std::begin(kGenerations), std::end(kGenerations),
        [capability](const Generation& each) { return capability >= each.compute_capability; });
}

Rate scaled(const Rate& rate, double factor) {
    std::vector<Rate::Point> points = rate.points();
    for (Rate::Point& point : points)
        point.bytes_per_second *= factor;
    return Rate(std::move(points));
}

void scale(Gpu& gpu, const Traits& traits) {
    const Generation& generation = generation_of(traits);
    const double memory = traits.memory_bytes_per_second > 0
                              ? traits.memory_bytes_per_second / kMeasuredMemory
                              : generation.host_link / kMeasuredHostLink;
    const double host = (traits.host_link_bytes_per_second > 0 ? traits.host_link_bytes_per_second
                                                               : generation.host_link) /
                        kMeasuredHostLink;
    for (CopyCost* copy : {&gpu.d2d, &gpu.fill})
        copy->rate = scaled(copy->rate, memory);
    for (CopyCost* copy : {&gpu.d2h, &gpu.h2d, &gpu.h2d_2d})
        copy->rate = scaled(copy->rate, host);
    // The driver copies pageable memory at the processor's pace, as long as the link can follow.
    for (CopyCost* copy : {&gpu.pageable_d2h, &gpu.pageable_h2d})
        copy->rate = scaled(copy->rate, std::min(1.0, 2 * host));
    if (traits.peer_atomics && generation.peer_link > 0) {
        const double peer = generation.peer_link / kMeasuredPeerLink;
        gpu.peer.rate = scaled(gpu.peer.rate, peer);
        gpu.peer_get.rate = scaled(gpu.peer_get.rate, peer);
    } else {
        // Over PCI Express a GPU reads from another more slowly than it writes to it.
        constexpr double kReading = 0.75;
        gpu.peer.rate = gpu.h2d.rate;
        gpu.peer_get.rate = scaled(gpu.h2d.rate, kReading);
    }
    // How kernels of one GPU see stores of another processor while they run is defined since Volta.
    if (traits.compute_major < 7)
        gpu.kernel.resident = gpu.kernel.resident_out = gpu.kernel.resident_in = 0;
    gpu.name = traits.name;
    gpu.compute_major = traits.compute_major;
    gpu.compute_minor = traits.compute_minor;
    gpu.memory = traits.memory;
}

}  // namespace

Machine estimate(const Traits& traits) {
    Result<Machine> measured = load("h200");
    GANTRY_ASSERT(measured.ok());
    Machine machine = *measured;
    scale(machine.gpu, traits);
    scale(machine.gpu_under_mps, traits);
    machine.name = slug(traits.name);
    machine.about = fmt::format(
        "Estimated, not measured: rates by what the driver and the system say of {}, all else as "
        "on an H200. gantry tune measures it.",
        traits.name);
    machine.gpus_per_node = traits.gpus;
    machine.peer_access = traits.peer_access;
    return machine;
}

}  // namespace gantry::model
