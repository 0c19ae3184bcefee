// SPDX-License-Identifier: BSD-3-Clause
//
// The cost model: plain functions of (operation, when engines are free) -> (start, end). They keep
// no state, so that the simulated GPU can hold the free-at times in shared memory and the world on
// its virtual clock.
//
// A GPU has five engines (four where one copies in both directions between it and host memory);
// operations on one engine run one after the other, engines run side by side. When processes share a
// GPU, whoever used the compute queue last owns it; work of another process that needs the queue pays
// for a turn (146 us on an H200).
#pragma once

#include "model/machine.hpp"

#include <cstdint>

namespace gantry::model {

enum class Operation : std::uint8_t {
    d2h,
    h2d,
    h2d_2d,
    d2d,
    peer,
    pageable_d2h,
    pageable_h2d,
    fill,
    kernel,
    peer_get  // between two GPUs, by the one that the bytes go to
};
inline constexpr int kOperations = 10;
enum class Engine : std::uint8_t { d2h, h2d, d2d, peer, compute };
inline constexpr int kEngines = 5;

struct Work {
    Operation operation = Operation::d2d;
    Bytes bytes = 0;
    std::uint64_t rows = 1;     // of a 2D copy
    std::uint64_t threads = 0;  // of a kernel
    bool further = false;       // a copy behind the first of the same call
};

struct Interval {
    Nanoseconds start = 0;  // when the engine begins
    Nanoseconds end = 0;    // when the effect is visible; the engine is free again
};

Engine engine_of(const Gpu& gpu, Operation operation);

// Whether the work needs the GPU's compute queue (its price is paid only after a change of
// process).
bool needs_turn(const Gpu& gpu, const Work& work);
// Nanoseconds between the call and the earliest moment at which an idle engine begins.
Nanoseconds launch_time(const Gpu& gpu, const Work& work);
// How long the work holds its engine.
Nanoseconds engine_time(const Gpu& gpu, const Work& work);
// When work called at `ready` runs. `turn`: what the change of process costs, 0 when there is none.
Interval place(const Gpu& gpu, const Work& work, Nanoseconds ready, Nanoseconds engine_free_at,
               Nanoseconds turn = 0);

// How long a processor reads or writes that much through a window.
Nanoseconds window_read_time(const Gpu& gpu, Bytes bytes);
Nanoseconds window_write_time(const Gpu& gpu, Bytes bytes);

// The turn that work of `process` pays when `last_process` used the queue last (-1: nobody yet).
Nanoseconds turn_cost(const Gpu& gpu, const Work& work, std::int64_t process,
                      std::int64_t last_process);

// One transfer over one rail.
enum class Transfer : std::uint8_t { message, put };
struct Carried {
    Nanoseconds left = 0;     // the sender's rail is free again
    Nanoseconds arrived = 0;  // the last byte is at the receiver; its rail is free again
};
Carried carry(const Link& link, Transfer transfer, Bytes bytes, Nanoseconds ready,
              Nanoseconds sender_free_at, Nanoseconds receiver_free_at);

}  // namespace gantry::model
