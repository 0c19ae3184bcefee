// SPDX-License-Identifier: BSD-3-Clause
//
// Time is injected: protocol code asks its engine's Clock, never the system. The product uses
// SteadyClock; the simulated world uses a virtual clock that jumps from event to event.
#pragma once

#include "base/units.hpp"

namespace gantry {

class Clock {
  public:
    virtual ~Clock() = default;
    virtual Nanoseconds now() const = 0;
};

class SteadyClock final : public Clock {
  public:
    Nanoseconds now() const override;
};

}  // namespace gantry
