// SPDX-License-Identifier: BSD-3-Clause
//
// Errand: an operation of a few KiB at host memory of another process of the node that nobody mapped, which
// that process carries out when it makes progress, while the origin waits inside its call. The kernel
// would copy such bytes too (process_memory.hpp), by a call that takes microseconds for its first block
// and most of one for each other. Each rank has a box in memory of the node:
//
//     free --(an origin)--> filling --> ready --(the owner)--> taken --> done --(the origin)--> free
//                                         +--(the origin, when nobody comes for it)--> free
//
// An errand that nobody comes for is taken back, and the kernel does it. So nothing depends on the owner,
// who may be computing; who finds an owner away tries again after more and more operations.
#pragma once

#include "base/units.hpp"
#include "rma/target_memory.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace gantry::rma {

// Runs of bytes in the owner's memory, equally far apart, and where their bytes are in the box.
struct ErrandRow {
    std::uint64_t address, width, count, pitch, packed, packed_pitch;
};

// In memory that processes share; all zero is an empty one.
struct ErrandBox {
    static constexpr Bytes kData = 12 * kKiB;
    static constexpr std::size_t kRows = 24;
    enum State : std::uint32_t { free, filling, ready, taken, done };

    alignas(64) std::atomic<std::uint32_t> state{free};
    Verb verb;
    layout::Operation operation;
    layout::Element element;
    std::int32_t error_class;
    std::uint32_t rows;
    std::uint64_t bytes;
    ErrandRow row[kRows];
    // What is written or combined, behind it what compare_and_swap compares with; then what was read.
    alignas(64) std::byte data[kData];

    // False: somebody else's errand is under way.
    bool begin() {
        std::uint32_t none = free;
        return state.load(std::memory_order_relaxed) == free &&
               state.compare_exchange_strong(none, filling, std::memory_order_acquire);
    }
    // Pairs with the acquire in take().
    void send() { state.store(ready, std::memory_order_release); }
    // By the owner; false: there is none to be carried out.
    bool take() {
        std::uint32_t sent = ready;
        return state.load(std::memory_order_relaxed) == ready &&
               state.compare_exchange_strong(sent, taken, std::memory_order_acquire);
    }
    // The owner cannot do it now.
    void put_back() { state.store(ready, std::memory_order_release); }
    // Pairs with the acquire in is_done().
    void finish() { state.store(done, std::memory_order_release); }
    bool is_done() const { return state.load(std::memory_order_acquire) == done; }
    // By the origin; false: the owner is at it.
    bool take_back() {
        std::uint32_t sent = ready;
        return state.compare_exchange_strong(sent, free, std::memory_order_relaxed);
    }
    void end() { state.store(free, std::memory_order_release); }

    // Writes down where the data bytes [first, first + some) of a buffer of the owner's are; in how many
    // blocks. 0: they are too scattered.
    Bytes name_rows(const Side& side, Bytes first, Bytes some);
    // By the owner, which has taken it. Whoever changes items holds ControlBlock::accumulating.
    Status carry_out();
};

}  // namespace gantry::rma
