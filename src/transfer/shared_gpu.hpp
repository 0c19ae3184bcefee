// SPDX-License-Identifier: BSD-3-Clause
//
// SharedGpu: who copies inside a GPU that two processes share (docs/design/time-sliced-gpu.md).
// Every change of the process that uses the compute queue costs a turn (about 140 us on an
// H200), so copies inside the GPU are cheap for the process that used it last, in either direction,
// and dear for the other. Two facts decide:
//
//   used()    when this process copied inside the GPU last; 0: never, or it does not pay. The RTS
//             carries the sender's, so the receiver knows who of the two was the last one.
//   invest()  while nobody was: a message is staged, and what a direct copy would have saved is put
//             aside. When that pays for a turn the receiver takes it, and keeps the GPU.
//
// A copy that took a turn's time longer than expected found the GPU busy with somebody else's
// work: this process steps back (used() is 0 again) and wants twice as much put aside before the
// next attempt. The first copy of an attempt may take its turn.
#pragma once

#include "base/break_even.hpp"

#include <cstdint>

namespace gantry::transfer {

class SharedGpu {
  public:
    // GANTRY_GPU_TURNS and GANTRY_GPU_TRUST.
    struct Limits {
        std::int64_t highest_price;
        std::int64_t trusted;
    };
    explicit SharedGpu(Limits limits) : limits_(limits) {}

    Nanoseconds used() const { return used_; }

    // Puts aside what copying directly would have saved; true when that is worth a turn now.
    bool invest(Nanoseconds saving, Nanoseconds turn, Nanoseconds now);
    // A direct copy of this process ended. `measured` false: the program kept us from watching it.
    void copied(Nanoseconds took, Nanoseconds expected, Nanoseconds turn, Nanoseconds now,
                bool measured);

  private:
    Limits limits_;
    Nanoseconds used_ = 0;
    BreakEven turn_;
    std::int64_t fast_ = 0;  // copies of this attempt that needed no turn
    bool first_ = true;      // the next copy may take a turn
};

}  // namespace gantry::transfer
