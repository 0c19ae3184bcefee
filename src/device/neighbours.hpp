// SPDX-License-Identifier: BSD-3-Clause
//
// Neighbours: what a device wants to know of the other processes of the node.
#pragma once

#include "device/facts.hpp"

namespace gantry::device {

class Neighbours {
  public:
    virtual ~Neighbours() = default;
    // Whether another rank uses this GPU, as far as is known.
    virtual bool use(const Uuid& gpu) const = 0;
};

}  // namespace gantry::device
