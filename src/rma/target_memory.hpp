// SPDX-License-Identifier: BSD-3-Clause
//
// Reading and changing a window's memory where this process reaches it: its own, a peer's that is
// mapped or that the kernel copies, by the origin or by the target on behalf of one. Data come and go
// packed, in pieces.
#pragma once

#include "rma/control.hpp"
#include "rma/operation.hpp"
#include "transfer/context.hpp"

namespace gantry::rma {

// Data bytes [first, first + bytes) of a target buffer.
struct Region {
    Side side;
    Bytes first = 0, bytes = 0;
    int process = 0;  // whose addresses the buffer has; 0: addresses here
    bool on_host() const { return !side.on_device(); }
};

// What one accumulate does to a region: `operand` is packed. `result`, if it is not null, takes what
// was there before.
struct Change {
    Verb verb = Verb::accumulate;
    layout::Operation operation = layout::Operation::replace;
    Items items;
    const std::byte* operand = nullptr;
    const std::byte* compare = nullptr;
    std::byte* result = nullptr;
};

// --- host memory, at once
Status write_host(const Region& region, const std::byte* packed);
Status read_host(const Region& region, std::byte* packed);
// The caller holds ControlBlock::accumulating.
Status change_host(const Region& region, const Change& change);

// --- any memory
Task<Status> write(Executor& executor, transfer::Context& context, Region region,
                   const std::byte* packed);
Task<Status> read(Executor& executor, transfer::Context& context, Region region, std::byte* packed);
Task<Status> change(Executor& executor, transfer::Context& context, Region region, Change change);

}  // namespace gantry::rma
