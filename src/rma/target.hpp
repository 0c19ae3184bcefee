// SPDX-License-Identifier: BSD-3-Clause
//
// Target: what a rank knows of one rank of a window, and what it has under way there.
#pragma once

#include "rma/errand.hpp"
#include "rma/layouts.hpp"
#include "rma/node_memory.hpp"
#include "rma/operation.hpp"
#include "rma/wire.hpp"
#include "transfer/mapping.hpp"

#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace gantry::rma {

enum class Lock : std::uint8_t { none, shared, exclusive, unchecked };

struct Target {
    int peer = -1;  // world rank
    // Why it takes no part any more: it is lost, has left after a failure, or the window is revoked.
    Status gone;
    std::uint64_t base = 0;
    Bytes bytes = 0;
    std::int64_t unit = 1;
    bool direct = false;
    std::byte* memory = nullptr;  // where `base` is here, if it is mapped
    // The same if all of it is host memory, as long as the rank takes part: loads and stores go there.
    std::byte* loads_and_stores = nullptr;
    // Memory of another node that puts of the network reach; its key is null where they do not.
    std::unique_ptr<transport::RemoteKey> key;
    std::uint64_t keyed_base = 0;  // address of the registered region, by the target's count
    bool keyed_on_device = false;  // what is put there shows when the target has settled it
    bool on_device = false;        // of another node
    int process = 0;               // direct by copies of the kernel: whose memory; else 0
    ErrandBox* errands = nullptr;  // of such a rank, and mine; null: there are none
    int errands_in_vain = 0, errands_to_skip = 0;
    device::Location location;
    transfer::Mapping mapped;         // of device memory that is mapped here
    ControlBlock* control = nullptr;  // null: on another node
    std::size_t local = 0;            // its number among the ranks of this node
    // What it has attached to a dynamic window, on this node; and what of that is mapped here.
    std::optional<Attachments> attachments;
    std::uint32_t last_attachment = 0;
    struct MappedRegion {
        device::IpcHandle handle;
        transfer::Mapping mapping;  // not open: refused
    };
    std::vector<MappedRegion> mapped_regions;

    // --- as the origin
    Lock lock = Lock::none;
    bool asks = false;                               // for the lock
    bool granted = false;                            // by message
    Status refused;                                  // the lock, by message
    bool in_started = false;                         // of the group of MPI_Win_start
    IntrusiveList<Operation> queue;                  // not begun yet, in order
    bool carrying = false;                           // a task takes them one by one
    int busy = 0;                                    // operations that have not ended here
    std::uint64_t sent = 0, sent_bytes = 0;          // messages that the target executes
    std::uint64_t executed = 0, executed_bytes = 0;  // of these, as it said
    std::uint64_t asked = 0;                         // how many were sent when it was asked last
    int rendezvous = 0;                              // puts that it has not said to have ended
    std::vector<std::byte> batch;                    // small puts that have not left
    Bytes batch_bytes = 0;                           // of data in it
    Status failure;                                  // the first one since the last synchronisation
    ToldLayouts told;

    // --- as the target of that rank
    struct Arrived {
        wire::Kind kind;
        std::vector<std::byte> header, payload;
    };
    std::unique_ptr<std::deque<Arrived>> arrived;  // waiting for their turn; made at first need
    bool has_arrived() const { return arrived != nullptr && !arrived->empty(); }
    std::uint64_t served = 0, served_bytes = 0;        // what it sent and I executed
    std::uint64_t reported = 0, reported_bytes = 0;    // of these, what it was told of
    std::uint64_t told_each = 1, told_each_bytes = 1;  // it is told after so many
    int first_error = MPI_SUCCESS;                     // of what was served since the last report
    HeardLayouts heard;
    // Told by message: of its exposures, and of its accesses. Of all: used by mine, and waited for.
    std::uint32_t posts = 0, completes = 0;
    std::uint32_t starts = 0, awaited = 0;
    Lock holds = Lock::none;  // which I took for it, of mine
};

}  // namespace gantry::rma
