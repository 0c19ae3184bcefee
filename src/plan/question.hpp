// SPDX-License-Identifier: BSD-3-Clause
//
// What the planner is asked: one message, as far as it is known, with the facts about both ends and
// the way between them. GPUs and networks are named by index into a Machine, so a question with its
// facts is small: it is the key of the selection cache (plan/selection_cache.hpp).
#pragma once

#include "base/units.hpp"
#include "device/facts.hpp"
#include "plan/rate_step.hpp"
#include "transport/facts.hpp"

#include <cstddef>
#include <vector>

namespace gantry::plan {

// One end of a message: where its buffer is.
struct End {
    device::MemoryKind kind = device::MemoryKind::host;
    device::IpcKind ipc = device::IpcKind::none;  // how the other process could map it
    bool contiguous = true;
    bool on_device() const { return kind == device::MemoryKind::device; }
    bool operator==(const End&) const = default;
};

struct Question {
    Bytes bytes = 0;
    End source;
    End sink;                     // meaningful when sink_known or sink_expected
    bool sink_known = false;      // false: the sender's offer; true: the receiver's verdict
    bool sink_expected = false;   // of an offer: the last message like it ended there
    bool synchronous = false;     // MPI_Ssend: completes only when matched
    bool eager_credit = true;     // the peer still has room for eager bytes
    bool awaited = false;         // its receiver waits for it: it need not be sent at once
    bool already_staged = false;  // all of it is in the sender's slots: only taking it out is left
    bool sender_absent = false;   // of a verdict: the sender did not come to do its part
    // Pieces of this size are already being copied ahead, and a pipeline keeps them. 0: none.
    Bytes started_chunk = 0;
    bool operator==(const Question&) const = default;
};

// Which end's process used a shared GPU last: its operations need no turn of the compute queue.
enum class GpuUser : std::uint8_t { unknown, sender, receiver };

// What the rails of an end's process read and write where it lies. Numbers are on the wire.
enum class Reach : std::uint8_t {
    nothing = 0,  // this buffer's registration was refused
    host_memory = 1,
    device_memory = 2,  // that too (GPUDirect)
};

// What is known of reading the sender's host memory from the receiver's process (transfer/host_reads.hpp).
enum class Reads : std::uint8_t {
    not_offered = 0,
    refused = 1,
    unmeasured = 2,  // copies through slots are to be measured first
    trial = 3,       // this message measures what reading costs
    measured = 4,    // Facts::rates says what both cost
    look = 5,        // likewise; this message goes the slower way, to see what it costs by now
};

// Allocations that take longer to open (model::kLargeMapping).
inline constexpr Bytes kLargeMapping = 512 * kMiB;

// What the indexes of Facts name.
struct Machine {
    std::vector<device::GpuFacts> gpus;                 // by GPU of this process
    std::vector<const transport::PeerFacts*> networks;  // by peer; each outlives the machine

    const device::GpuFacts& gpu(int index) const {
        static constexpr device::GpuFacts kNone{};
        const auto at = static_cast<std::size_t>(index);
        return index >= 0 && at < gpus.size() ? gpus[at] : kNone;
    }
    const transport::PeerFacts& network(int index) const {
        return *networks[static_cast<std::size_t>(index)];
    }
};

struct Facts {
    int network = 0;                     // of the machine: the way to the peer
    int source_gpu = -1, sink_gpu = -1;  // of the machine; -1: the end is on no GPU that is known
    int uses = 0;      // messages from the source's allocation that were staged since it was closed
    int put_uses = 0;  // the same of messages into the sink's allocation
    // A sender that does not know the sink expects it like its own end.
    Reach source_reach = Reach::host_memory;
    Reach sink_reach = Reach::host_memory;
    GpuUser last_user = GpuUser::unknown;  // of a GPU that both share
    bool same_gpu = false;                 // both ends on one GPU (two processes share it)
    bool gpu_shared =
        false;  // of an offer: the last strided message to that peer stayed on its GPU
    bool peer_access = false;  // the GPUs reach each other directly
    bool kept_away = false;    // they do not, since one is kept from the process of the other
    bool ipc_open = false;     // the receiver has opened the source's memory already
    bool put_open = false;     // the sender has opened the sink's memory already
    bool rtr = false;          // the receiver waits, and has named its buffer to the sender (RTR)
    bool exposed = false;      // the transport exposes the source's memory with the RTS
    bool descriptor = true;    // what the receiver needs to open the source's memory is there
    Reads reads = Reads::not_offered;
    HostRates rates;           // of copies between host memories of the node; 0: not known
    bool sender_busy = false;  // it has device work pending, which an opening would stall
    bool receiver_busy = false;
    // Opening costs what a first one does (Device::opens_first), and what a large allocation does.
    bool sender_first = false, receiver_first = false;
    bool source_large = false, sink_large = false;
    // No slot for device messages to that peer was taken yet: the first ones have to be page-locked,
    // by both.
    bool cold_slots = false;
    bool sender_opens = true;    // the sender's process uses a driver, and may open the sink's GPU
    bool receiver_opens = true;  // the same of the receiver's process and the source's GPU
    bool source_bar = false;     // the sender's processor reads the source itself (GDRCopy)
    bool sink_bar = false;       // the receiver's processor writes the sink itself
    bool operator==(const Facts&) const = default;
};

// Both ends share a GPU whose compute queue goes from one process to the other at a price. Under MPS
// it does not.
inline bool is_time_sliced(const Facts& facts, const Machine& machine) {
    return facts.same_gpu && machine.gpu(facts.sink_gpu).queue_turn > 0;
}

}  // namespace gantry::plan
