// SPDX-License-Identifier: BSD-3-Clause
//
// Machine: what operations cost on a described machine, as plain data from one JSON file
// (machines/*.json, or what `gantry tune` writes). The same description drives the planner's facts,
// the simulated GPU (real processes) and the simulated world (virtual clock); cost.hpp holds the
// functions. Times are nanoseconds; a copy is
//
//   call        engine free              end
//    |-- launch --|--- gap + bytes/rate ---|   latency (of a tiny copy alone) = launch + gap
//
// so a single copy pays `latency`, and each further one in a row pays `gap`: the price of a chunk.
#pragma once

#include "base/status.hpp"
#include "base/units.hpp"
#include "model/rate.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace gantry::model {

// One kind of copy of one GPU.
struct CopyCost {
    Nanoseconds latency = 0;  // one tiny copy alone, from the call until its end
    Nanoseconds gap =
        0;           // what each copy holds its engine beyond the bytes; never more than latency
    double row = 0;  // nanoseconds that each row beyond the first adds (2D copies)
    Bytes turn_below =
        0;  // copies smaller than this need a turn of the compute queue; kAlwaysTurn: all
    Rate rate;
    bool operator==(const CopyCost&) const = default;
};
inline constexpr Bytes kAlwaysTurn = ~Bytes{0};

struct KernelCost {
    Nanoseconds latency = 0;  // an empty kernel, from the call until its end
    double thread = 0;        // nanoseconds per thread of the grid
    // A small copy that is given to a kernel which runs already, until its end is seen: between
    // devices, to host memory, and from it (8 bytes); 0: not known, and no kernel shall do it.
    Nanoseconds resident = 0, resident_out = 0, resident_in = 0;
    // Copies that go in one launch: with so many bytes waiting their time on the link is longer
    // than a launch; so many copies are not let wait for more; so many blocks fill the link.
    Bytes worth_bytes = 2 * kMiB;
    int worth_copies = 64;
    int enough_blocks = 64;
    // Kernels that store to another GPU, and that load from one: of the rate of a copy engine.
    double peer_stores = 0.85, peer_loads = 0.75;
    bool operator==(const KernelCost&) const = default;
};

inline constexpr Bytes kLargeMapping = 512 * kMiB;

// What driver calls cost the calling thread, whatever the engines do.
struct CallCost {
    Nanoseconds copy = 0;  // starting an asynchronous copy
    // Each further copy of the same call (cuMemcpyBatchAsync), to the processor and to the engine.
    Nanoseconds further_copy = 600;
    Nanoseconds launch = 0;
    Nanoseconds event_record = 0;
    Nanoseconds event_query = 0;  // of an event that is done
    Nanoseconds event_query_vain = 0;
    Nanoseconds write_value = 0;  // cuStreamWriteValue32 until the host sees the flag
    Nanoseconds event_seen = 0;   // the same for a copy's end that is seen by asking for an event
    Nanoseconds d2d_event_seen = 0;   // of a copy inside the GPU; 0: as of others
    Nanoseconds host_event_seen = 0;  // of one between the GPU and page-locked memory; likewise
    Nanoseconds classify_host = 0;    // one attribute query on memory the driver does not know
    Nanoseconds classify_device = 0;
    Nanoseconds allocate = 0;
    Nanoseconds register_host = 0;  // page-locking, whatever the size
    Nanoseconds ipc_export = 0;
    Nanoseconds ipc_open = 0;       // memory of the same GPU
    Nanoseconds ipc_open_peer = 0;  // memory of another GPU, of which something is open already
    // What the first memory of another GPU adds, of whatever kind, as long as nothing of it is open; and
    // an allocation of kLargeMapping or more.
    Nanoseconds ipc_pair = 0;
    Nanoseconds ipc_open_large = 0;
    Nanoseconds ipc_close = 0;
    Nanoseconds vmm_open = 0;   // importing, reserving, mapping virtual memory of a peer
    Nanoseconds pool_open = 0;  // importing a pool of the same GPU
    Nanoseconds pool_open_peer = 0;
    Nanoseconds pool_first = 0;  // what the first pool of another GPU adds, once for a process
    bool operator==(const CallCost&) const = default;
};

// A window on device memory: the processor's own loads and stores through the PCIe bus (GDRCopy).
// The defaults are GDRCopy's published figures (its README, a P100), rounded to the careful side
// and not measured by us: 8 B are read in 1.8 us, 4 KiB in 10.5; written in 0.1 and 0.43.
struct WindowCost {
    Nanoseconds open = 150000;  // pinning and mapping it, and giving it back some time
    Nanoseconds read = 1800, write = 200;
    double read_bytes_per_second = 4.5e8, write_bytes_per_second = 8e9;
    bool operator==(const WindowCost&) const = default;
};

struct Gpu {
    std::string name;
    int compute_major = 0, compute_minor = 0;
    Bytes memory = 0;
    int copy_engines = 2;  // with one, copies to and from host memory take turns
    CopyCost d2h, h2d, h2d_2d, d2d;
    CopyCost peer;  // to another GPU of the node, by the GPU that the bytes come from
    CopyCost
        peer_get;  // the same by the GPU that they go to; without a rate it costs what `peer` does
    CopyCost pageable_d2h, pageable_h2d;  // the driver staging through its own pinned memory
    CopyCost fill;
    KernelCost kernel;
    CallCost calls;
    WindowCost window;
    Nanoseconds turn = 0;  // a turn of the compute queue after another process used it
    bool operator==(const Gpu&) const = default;
};

// Processors and memory of a node.
struct Host {
    Rate memcpy;  // one thread
    double streaming =
        0;  // bytes per second of one thread that writes past the cache; 0: as memcpy
    Nanoseconds flag = 0;  // until a store is seen by another core
    bool operator==(const Host&) const = default;
};

// A way between two ranks: a rail of the network, or shared memory (rails == 1; the rate is one
// process copying).
struct Link {
    std::string name;
    int rails = 1;
    Nanoseconds latency = 0;        // an empty message, one way
    Nanoseconds message_cost = 0;   // what each message holds the sender's rail beyond its bytes
    Nanoseconds put_cost = 0;       // the same for a put
    Nanoseconds register_cost = 0;  // registering memory with all rails, whatever the size
    Bytes eager_max = 0;            // largest payload of one active message
    Bytes eager_limit = 32 * kKiB;  // largest one that is sent at once: above, asking first is
                                    // faster
    Bytes header = 0;               // bytes on the wire around each message
    Bytes control_max = 0;  // messages up to this size have a queue of their own beside the bulk;
                            // 0: one queue for all
    Rate rate;              // one rail
    // Bytes per second of each rail where they differ; empty: all as `rate`.
    std::vector<double> rail_rates;
    // Bytes per second of all of them.
    double all_rails() const {
        if (rail_rates.empty()) return rate.peak() * (rails > 1 ? rails : 1);
        double sum = 0;
        for (const double one : rail_rates)
            sum += one;
        return sum;
    }
    // What all rails of a rank carry together, in and out (ports of one card behind one bus); 0: no
    // limit.
    double shared_cap = 0;
    // A process of the node reads another one's memory (process_vm_readv): one call, and its rate;
    // empty: it may not.
    Nanoseconds read_latency = 0;
    Rate read_rate;
    bool device_memory = false;  // rails reach device memory themselves (GPUDirect RDMA)
    // Bytes per second that one rail reads out of device memory and writes into it; 0: as its rate.
    double device_read = 0, device_write = 0;
    bool operator==(const Link&) const = default;
};

struct Machine {
    std::string name;
    std::string about;  // where the numbers come from
    Gpu gpu;
    // The same GPU where its processes share one compute queue: nobody waits for turns.
    Gpu gpu_under_mps;
    int gpus_per_node = 1;
    bool peer_access = false;  // between different GPUs of a node
    bool ipc = false;          // whether processes can map each other's device memory
    Host host;
    Link shared_memory;
    Link network;
    bool operator==(const Machine&) const = default;
};

// What is expected under MPS of a GPU that was measured without.
inline Gpu without_turns(Gpu gpu) {
    gpu.turn = 0;
    return gpu;
}

// Machines that are compiled in, by name.
std::vector<std::string_view> built_in_machines();
// A built-in name, or a file name (anything with a '/' or ending in ".json").
Result<Machine> load(std::string_view name_or_file);

// What a network is taken for before anything is known of it: "tcp" or "card"
// (networks/*.json).
Link built_in_network(std::string_view name);

Result<Machine> from_json(std::string_view text, std::string_view origin);
Result<Link> link_from_json(std::string_view text, std::string_view origin);
std::string to_json(const Machine& machine);

}  // namespace gantry::model
