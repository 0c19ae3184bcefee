// SPDX-License-Identifier: BSD-3-Clause
//
// What the planner may know about devices: plain data, no handles. Rates and costs come from a
// machine description (model/) or from `gantry tune`; which GPU a pointer is on comes from
// classification.
#pragma once

#include "base/units.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace gantry::device {

// What a pointer points to. Each kind is explicit: pools and VMM memory are `device` with other IPC
// abilities, never "managed".
enum class MemoryKind : std::uint8_t {
    host,     // pageable host memory
    pinned,   // page-locked host memory that the driver knows (allocated or registered)
    device,   // memory of one GPU; the host must not touch it
    managed,  // migrates; the host may touch it
};

// How another process of the node can map device memory.
enum class IpcKind : std::uint8_t { none, legacy, vmm, pool };

using Uuid = std::array<std::uint8_t, 16>;

// Sets of rows that one kernel moves at most (Engine::kernel).
inline constexpr Bytes kMostSetsOfKernel = 5000;
// And where some are planes of rows.
inline constexpr Bytes kMostBoxesOfKernel = 8;

// Vectors that one kernel reduces at most (Device::reduce).
inline constexpr Bytes kMostReduced = 16;

// Engine::fused: of any direction up to the first size, gets from another GPU up to the third. Several
// go in one kernel, or above the second size in one call for copy engines, with as much as the third
// in all: the first of a call is seen to end with the last.
inline constexpr Bytes kMostFused = 64 * kKiB, kMostInOneLaunch = 256 * kKiB,
                       kMostInOneCall = 16 * kMiB;

// What one GPU's operations cost.
struct GpuFacts {
    Uuid uuid{};
    int copy_engines = 2;  // with one, copies to and from host memory take turns
    double d2h_bytes_per_second = 12e9;
    double h2d_bytes_per_second = 12e9;
    double d2d_bytes_per_second = 200e9;
    double peer_bytes_per_second = 0;      // put to another GPU of the node; 0 without peer access
    double peer_get_bytes_per_second = 0;  // got from another GPU; 0: as fast as a put
    Nanoseconds peer_get_more = 0;         // what a get from another GPU takes longer than a put
    Nanoseconds copy_latency = 8000;       // one copy, from the call until its completion is seen
    Nanoseconds copy_in_latency = 8000;    // one from page-locked host memory
    Nanoseconds pageable_latency = 8000;   // one to pageable memory, by the driver
    Nanoseconds chunk_cost = 3500;  // what each further copy in a row adds (engine gap, event)
    double row_ns = 0;              // what each further row of a 2D copy out of it adds, of 8 bytes
    double row_into_ns = 0;         // into it
    Nanoseconds kernel_latency = 8000;  // a kernel alone, likewise
    // A copy that a kernel which stays takes, between devices, to host memory, from it (8 bytes);
    // 0: none shall.
    Nanoseconds resident_latency = 0, resident_out_latency = 0, resident_in_latency = 0;
    Nanoseconds launch = 3000;  // what the call costs the processor
    Nanoseconds queue_turn =
        0;  // price of a turn of the compute queue when another process used the GPU last
    bool mps = false;  // its processes are known to share one compute queue: there are no turns
    Bytes h2d_without_turn = 0;       // host-to-device copies from this size up need no turn
    Bytes pageable_without_turn = 0;  // those from pageable memory
    // Opening a peer's memory (and closing it again some time): legacy handles and pools of the
    // same GPU, and of another one; virtual memory. And what the first ones add (model::CallCost).
    Nanoseconds ipc_open = 100000, ipc_open_peer = 1000000;
    Nanoseconds pool_open = 400000, pool_open_peer = 10000000;
    Nanoseconds vmm_open = 250000;
    Nanoseconds ipc_pair = 0, ipc_open_large = 0, pool_first = 0;
    Nanoseconds page_lock = 0;       // host memory for slots
    Nanoseconds event_query = 1350;  // asking the driver whether a copy has ended
    Nanoseconds flag_write = 3900;   // a flag that a stream writes behind a copy, until it is seen
    Nanoseconds event_seen = 2700;   // the same when the driver is asked instead
    Nanoseconds d2d_event_seen = 2700;   // of a copy inside the GPU
    Nanoseconds host_event_seen = 2700;  // of one between it and page-locked memory
    // One launch for copies that wait: from so many bytes or copies, with at most so many blocks.
    Bytes launch_worth_bytes = 2 * kMiB;
    unsigned launch_worth_copies = 64;
    unsigned launch_enough_blocks = 64;
    // Kernels that store to another GPU, and that load from one: of the rate of a copy engine.
    double kernel_stores = 0.85, kernel_loads = 0.75;
    // The processor's own loads and stores through a BAR mapping (model::WindowCost says whose figures).
    Nanoseconds bar_open = 150000, bar_read = 1800, bar_write = 200;
    double bar_read_bytes_per_second = 4.5e8, bar_write_bytes_per_second = 8e9;
    double pageable_bytes_per_second = 6e9;
    // One core copying between a slot and pageable memory: inside the cache, and past it.
    double host_bytes_per_second = 10e9;
    double host_streaming_bytes_per_second = 8e9;
    // Copies of fewer bytes from such host memory may wait for a turn.
    Bytes turns_below(MemoryKind host) const {
        if (queue_turn == 0) return 0;
        return host == MemoryKind::pinned ? h2d_without_turn
                                          : std::max(h2d_without_turn, pageable_without_turn);
    }
    void let_no_kernel_stay() { resident_latency = resident_out_latency = resident_in_latency = 0; }
    bool operator==(const GpuFacts&) const = default;
};

}  // namespace gantry::device
