// SPDX-License-Identifier: BSD-3-Clause
//
// Pins: host memory that Gantry wants page-locked. A registration is portable, so one context
// serves all; it dies with the context it was made in and is then made again in the next one that
// is used. Memory that is named before any context is known is registered when the first one is.
#pragma once

#include "device/cuda/context.hpp"

#include "base/units.hpp"
#include "device/pointer_cache.hpp"

#include <vector>

namespace gantry::device::cuda {

class Pins {
  public:
    explicit Pins(Driver& driver) : driver_(driver) {}
    void add(void* address, Bytes bytes) {
        pins_.push_back({address, bytes, {}, Standing::wanted});
    }
    void remove(void* address);
    // All of it is registered, by us.
    bool cover(const void* address, Bytes bytes) const { return around(address, bytes).size > 0; }
    // What we registered around it; empty: not all of it is.
    Range around(const void* address, Bytes bytes) const;
    // Registers what is wanted and not registered yet; the first refusal. A refused range is not
    // tried again.
    Status apply(const Context& context);
    void forget_context(CUcontext context);
    void clear();

  private:
    // `foreign`: somebody else had registered it, and takes it back.
    enum class Standing : std::uint8_t { wanted, ours, foreign, refused };
    struct Pin {
        void* address;
        Bytes bytes;
        Context context;
        Standing standing;
    };
    void unregister(const Pin& pin);
    Driver& driver_;
    std::vector<Pin> pins_;
};

}  // namespace gantry::device::cuda
