// SPDX-License-Identifier: BSD-3-Clause
//
// Neighbours: what a device wants to know of the other processes of the node.
#pragma once

#include "device/facts.hpp"

#include <algorithm>

namespace gantry::device {

class Neighbours {
  public:
    virtual ~Neighbours() = default;
    // Whether another rank uses this GPU, as far as is known.
    virtual bool use(const Uuid& gpu) const = 0;
};

// Copies from the host that would wait for a turn of a GPU's compute queue, and do not in rows: small
// ones into a GPU that another rank uses, too, without MPS (docs/design/0002, 30).
class RowsIntoSharedGpu {
  public:
    explicit RowsIntoSharedGpu(const GpuFacts& gpu)
        : gpu_(gpu.uuid),
          below_(gpu.queue_turn > 0 ? std::max(gpu.h2d_without_turn, gpu.pageable_without_turn)
                                    : 0) {}

    // `neighbours`: null, nobody is known.
    bool suit(Bytes bytes, const Neighbours* neighbours) const {
        return bytes < below_ && neighbours != nullptr && neighbours->use(gpu_);
    }

  private:
    Uuid gpu_;
    Bytes below_;
};

}  // namespace gantry::device
