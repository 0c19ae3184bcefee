// SPDX-License-Identifier: BSD-3-Clause
//
// Scenes: the machines and neighbourhoods that plans are pinned for. Numbers are written out here,
// not loaded from a machine description, so that a plan changes only when the planner does. Rounded
// from measurements of an H200 (bench/results) and from the platform of the published figures (C2050, QDR).
#pragma once

#include "plan/plan.hpp"

#include <string>
#include <vector>

namespace gantry::test {

inline device::GpuFacts h200() {
    device::GpuFacts gpu;
    gpu.uuid[0] = 1;
    gpu.d2h_bytes_per_second = 55e9;
    gpu.h2d_bytes_per_second = 55e9;
    gpu.d2d_bytes_per_second = 2000e9;
    gpu.peer_bytes_per_second = 375e9;
    gpu.copy_latency = 7200;
    gpu.pageable_latency = 9000;
    gpu.resident_latency = 4400;
    gpu.resident_out_latency = 4200;
    gpu.resident_in_latency = 4400;
    gpu.chunk_cost = 3500;
    gpu.queue_turn = 135000;
    gpu.h2d_without_turn = 32 * kKiB;
    gpu.pageable_without_turn = 128 * kKiB;
    gpu.ipc_open = 100000;
    gpu.ipc_open_peer = 1000000;
    gpu.pageable_bytes_per_second = 12e9;
    gpu.host_bytes_per_second = 31e9;
    gpu.host_streaming_bytes_per_second = 16e9;
    return gpu;
}

inline device::GpuFacts other_h200() {
    device::GpuFacts gpu = h200();
    gpu.uuid[0] = 2;
    return gpu;
}

inline device::GpuFacts c2050() {
    device::GpuFacts gpu;
    gpu.uuid[0] = 3;
    gpu.d2h_bytes_per_second = 5.5e9;
    gpu.h2d_bytes_per_second = 5.5e9;
    gpu.d2d_bytes_per_second = 100e9;
    gpu.copy_latency = 10000;
    gpu.pageable_latency = 15000;
    gpu.chunk_cost = 2000;
    gpu.queue_turn = 100000;
    gpu.pageable_bytes_per_second = 2e9;
    gpu.host_bytes_per_second = 8e9;
    gpu.host_streaming_bytes_per_second = 5e9;
    return gpu;
}

inline transport::PeerFacts shared_memory() {
    transport::PeerFacts peer;
    peer.shared_memory = true;
    peer.eager_max = 64 * kKiB;
    peer.bytes_per_second = 12e9;
    peer.message_latency = 300;
    return peer;
}

inline transport::PeerFacts qdr() {
    transport::PeerFacts peer;
    peer.put = true;
    peer.eager_max = 17 * kKiB;
    peer.bytes_per_second = 3.1e9;
    peer.message_latency = 2000;
    peer.put_cost = 300;
    return peer;
}

inline transport::PeerFacts ndr(int rails = 1) {
    transport::PeerFacts peer;
    peer.put = true;
    peer.rails = rails;
    peer.eager_max = 32 * kKiB;
    peer.bytes_per_second = 48e9;
    peer.message_latency = 1300;
    peer.put_cost = 100;
    return peer;
}

// Facts with the GPUs and the network that they name, which a test may change.
struct Described : plan::Facts {
    device::GpuFacts source_gpu, sink_gpu;
    transport::PeerFacts peer;
    bool is_time_sliced() const { return same_gpu && sink_gpu.queue_turn > 0; }
};

// plan::choose on a machine of just these.
inline plan::Choice choose(const plan::Question& question, const Described& described,
                           const plan::Tuning& tuning) {
    const plan::Machine machine{{described.source_gpu, described.sink_gpu}, {&described.peer}};
    plan::Facts facts = described;
    facts.network = 0;
    facts.source_gpu = 0;
    facts.sink_gpu = 1;
    return plan::choose(question, facts, machine, tuning);
}

struct Scene {
    std::string name;
    Described facts;
    plan::Tuning tuning;
    device::IpcKind ipc = device::IpcKind::none;  // of device memory in this scene
    bool strided = false;                         // data in device memory is
};

inline Described facts(transport::PeerFacts peer, device::GpuFacts source, device::GpuFacts sink) {
    Described result;
    result.peer = peer;
    result.source_gpu = source;
    result.sink_gpu = sink;
    return result;
}

inline std::vector<Scene> scenes() {
    using device::IpcKind;
    std::vector<Scene> all;
    auto add = [&all](std::string name, Described scene_facts, IpcKind ipc) -> Scene& {
        return all.emplace_back(Scene{std::move(name), scene_facts, {}, ipc});
    };
    auto same_gpu = facts(shared_memory(), h200(), h200());
    same_gpu.same_gpu = same_gpu.peer_access = same_gpu.ipc_open = same_gpu.put_open = true;
    auto two_gpus = facts(shared_memory(), h200(), other_h200());
    two_gpus.peer_access = true;

    add("one shared GPU (H200), busy: nobody copied in it lately", same_gpu, IpcKind::legacy);
    add("one shared GPU (H200), idle: the receiver used it last", same_gpu, IpcKind::legacy)
        .facts.last_user = plan::GpuUser::receiver;
    add("one shared GPU (H200), the sender used it last", same_gpu, IpcKind::legacy)
        .facts.last_user = plan::GpuUser::sender;
    add("one shared GPU (H200), under MPS: no turns", same_gpu, IpcKind::legacy)
        .facts.source_gpu.queue_turn = 0;
    add("two GPUs with peer access (H200), mapping not open yet", two_gpus, IpcKind::legacy);
    auto often = two_gpus;
    often.uses = often.put_uses = 300;
    add("two GPUs with peer access (H200), 300 messages of the buffer were staged", often,
        IpcKind::legacy);
    auto working = two_gpus;
    working.uses = working.put_uses = 50;
    add("two GPUs with peer access (H200), 50 messages were staged, both are idle", working,
        IpcKind::legacy);
    working.receiver_busy = working.sender_busy = true;
    add("two GPUs with peer access (H200), 50 messages were staged, both have work pending",
        working, IpcKind::legacy);
    often.descriptor = false;
    add("two GPUs, virtual memory (H200), often staged, descriptor on its way", often, IpcKind::vmm)
        .facts.sender_opens = false;
    add("two GPUs, exportable pool (H200), mapping not open yet", two_gpus, IpcKind::pool);
    auto open = two_gpus;
    open.ipc_open = open.put_open = true;
    add("two GPUs with peer access (H200), mappings open", open, IpcKind::legacy);
    open.rtr = true;
    open.sink_gpu.peer_get_more = 1000;
    open.sink_gpu.peer_get_bytes_per_second = 382e9;
    add("two GPUs (H200), mappings open, the receiver waits and sent an RTR", open,
        IpcKind::legacy);
    open.put_open = false;
    open.put_uses = 300;
    add("two GPUs (H200), after an RTR, the sender has not mapped the buffer after 300 messages",
        open, IpcKind::legacy);
    add("two GPUs without peer access (H200)", two_gpus, IpcKind::legacy).facts.peer_access = false;
    add("two GPUs, default-pool memory (H200)", two_gpus, IpcKind::none);
    add("two GPUs, GANTRY_IPC=off (H200)", two_gpus, IpcKind::legacy).tuning.ipc = false;
    Described& reads = add("two GPUs, host memory is read at 20 GB/s and leaves slots at 12 (H200)",
                           two_gpus, IpcKind::legacy)
                           .facts;
    reads.reads = plan::Reads::measured;
    reads.rates = {.slots = plan::step_of(12e9, plan::kRateUnit),
                   .reads = plan::step_of(20e9, plan::kRateUnit),
                   .call = plan::step_of(1400, plan::kTimeUnit)};
    add("receiver without a driver (H200)", two_gpus, IpcKind::legacy).facts.receiver_opens = false;
    add("two nodes, C2050 and QDR", facts(qdr(), c2050(), c2050()), IpcKind::none);
    add("two nodes, PCIe 5 and 400 Gb/s (H200)", facts(ndr(), h200(), other_h200()),
        IpcKind::legacy);
    add("two nodes, PCIe 5 and 2 x 400 Gb/s (H200)", facts(ndr(2), h200(), other_h200()),
        IpcKind::legacy);
    auto direct = facts(ndr(), h200(), other_h200());
    direct.source_reach = direct.sink_reach = plan::Reach::device_memory;
    add("two nodes, GPUDirect and 400 Gb/s (H200)", direct, IpcKind::legacy);
    add("two nodes, GPUDirect at the sender alone (H200)", direct, IpcKind::legacy)
        .facts.sink_reach = plan::Reach::host_memory;
    add("two nodes, GPUDirect at the receiver alone (H200)", direct, IpcKind::legacy)
        .facts.source_reach = plan::Reach::host_memory;
    add("two nodes, the sender's buffer cannot be registered (H200)", direct, IpcKind::legacy)
        .facts.source_reach = plan::Reach::nothing;
    auto hybrid = facts(qdr(), c2050(), c2050());
    hybrid.source_reach = hybrid.sink_reach = plan::Reach::device_memory;
    hybrid.peer.device_read_bytes_per_second = 1e9;
    hybrid.peer.device_write_bytes_per_second = 5e9;
    add("two nodes, GPUDirect that reads at 1 GB/s and writes at 5 (C2050 and QDR)", hybrid,
        IpcKind::none);
    auto slow = hybrid;
    slow.peer.device_write_bytes_per_second = 0.8e9;
    add("two nodes, GPUDirect that is slow both ways (C2050 and QDR)", slow, IpcKind::none);
    add("one node, no GPU", facts(shared_memory(), {}, {}), IpcKind::none);
    auto windows = open;
    windows.source_bar = windows.sink_bar = true;
    add("two GPUs (H200), mappings open, BAR mappings at both ends (GDRCopy)", windows,
        IpcKind::legacy);
    add("two GPUs (H200), mappings open, a BAR mapping at the source alone", windows,
        IpcKind::legacy)
        .facts.sink_bar = false;
    add("two GPUs (H200), mappings open, a BAR mapping at the sink alone", windows, IpcKind::legacy)
        .facts.source_bar = false;
    auto shared_windows = same_gpu;
    shared_windows.source_bar = shared_windows.sink_bar = true;
    add("one shared GPU (H200), BAR mappings at both ends", shared_windows, IpcKind::legacy);
    add("one shared GPU (H200), a BAR mapping at the sink alone", shared_windows, IpcKind::legacy)
        .facts.source_bar = false;
    auto far_windows = facts(ndr(), h200(), other_h200());
    far_windows.source_bar = far_windows.sink_bar = true;
    add("two nodes, 400 Gb/s (H200), BAR mappings at both ends", far_windows, IpcKind::legacy);
    add("strided, one shared GPU (H200)", same_gpu, IpcKind::legacy).strided = true;
    add("strided, two GPUs with peer access (H200), mappings open", open, IpcKind::legacy).strided =
        true;
    add("strided, two nodes, 400 Gb/s (H200)", facts(ndr(), h200(), other_h200()), IpcKind::legacy)
        .strided = true;
    auto self = facts({}, h200(), h200());
    self.peer.self = true;
    add("a message to oneself (H200)", self, IpcKind::legacy);
    return all;
}

inline plan::End end(device::MemoryKind kind, device::IpcKind ipc) {
    return {.kind = kind, .ipc = kind == device::MemoryKind::device ? ipc : device::IpcKind::none};
}

}  // namespace gantry::test
