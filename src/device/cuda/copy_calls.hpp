// SPDX-License-Identifier: BSD-3-Clause
//
// What the driver is called for one copy: by a copy engine, in rows, between two contexts, or by
// the kernel that moves rows. Where it goes and how its end is seen is streams.hpp's.
#pragma once

#include "device/cuda/resident.hpp"
#include "device/cuda/row_kernel.hpp"
#include "device/device.hpp"

#include <optional>

namespace gantry::device::cuda {

enum class Queue : std::uint8_t { d2h, h2d, d2d, peer };

// A copy and how to make it.
struct Order {
    Copy copy;
    Queue queue = Queue::d2d;
    int peer = -1;                // of queue `peer`: the other GPU
    bool outwards = false;        // of queue `peer`: to it, not from it
    bool from_host = false;       // of queue h2d, in one run: of host memory for certain
    bool may_be_written = false;  // the same, to memory that stays on its GPU
    // Of one run: how a persistent kernel can make it.
    std::optional<ResidentCopies::Way> resident = std::nullopt;
    bool rows_may_stay = false;         // it has rows, where a persistent kernel reaches both ends
    const Reduce* reduction = nullptr;  // not a copy but this, of queue d2d; valid during start()
    bool unreached = false;             // no kernel of that context reaches both ends
    bool may_cut_through = false;       // its ends are such that Copy::pieces could flow
    CUcontext destination_context =
        nullptr;  // both set: a copy between two contexts of this process
    CUcontext source_context = nullptr;
};

struct Issued {
    CUresult result = CUDA_SUCCESS;
    int started = 0;             // copies that are in the stream all the same
    const char* call = "";       // null: no kernel can do it, and nothing was called
    RowTables::Held tables = 0;  // that it reads
};

// Queues it in `stream`, with the stream's context current.
Issued issue(Driver& driver, RowKernel& row_kernel, const Order& order, CUstream stream);

}  // namespace gantry::device::cuda
