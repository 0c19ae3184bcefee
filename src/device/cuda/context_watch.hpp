// SPDX-License-Identifier: BSD-3-Clause
//
// ContextWatch: which contexts of the program's own making still live. A real driver crashes when
// it is handed a destroyed context (the simulated one answers with an error), so a handle of such a
// context is never used to find out. Each has a witness instead: a small allocation made in it,
// which goes when the context goes; asking for the context of an address is safe for any address.
// A GPU's primary context needs no witness: its handle stays valid.
#pragma once

#include "device/cuda/driver.hpp"

#include <vector>

namespace gantry::device::cuda {

class ContextWatch {
  public:
    explicit ContextWatch(Driver& driver) : driver_(driver) {}

    // A context that is known to live right now: a pointer's, or this thread's current one.
    void saw(CUcontext context, CUdevice device) {
        if (context != last_seen_) saw_another(context, device);
    }
    // The next context that the program has destroyed, forgotten here; null: all live.
    CUcontext take_dead() { return any_witness_ && driver_.ready() ? find_dead() : nullptr; }

  private:
    struct Watched {
        CUcontext context;
        CUdeviceptr witness;  // 0: a primary context, or one with no memory left for a witness
    };
    CUcontext find_dead();
    void saw_another(CUcontext context, CUdevice device);
    bool is_primary(CUcontext context, CUdevice device);

    Driver& driver_;
    std::vector<Watched> watched_;
    CUcontext last_seen_ = nullptr;  // one of them
    bool any_witness_ = false;
};

}  // namespace gantry::device::cuda
