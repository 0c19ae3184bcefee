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

// Copies from the host that would wait for a turn of a GPU's compute queue, and do not in rows: small
// ones into a GPU that another rank uses, too, without MPS (docs/design/time-sliced-gpu.md).
// Whether the host's memory is page-locked is not asked: in rows it is as quick.
class RowsIntoSharedGpu {
  public:
    explicit RowsIntoSharedGpu(const GpuFacts& gpu)
        : gpu_(gpu.uuid), below_(gpu.turns_below(MemoryKind::host)) {}

    // `neighbours`: null, nobody is known.
    bool suit(Bytes bytes, const Neighbours* neighbours) {
        if (bytes >= below_ || neighbours == nullptr) return false;
        shared_ = shared_ || neighbours->use(gpu_);  // once, for ever
        return shared_;
    }

  private:
    Uuid gpu_;
    Bytes below_;
    bool shared_ = false;
};

}  // namespace gantry::device
