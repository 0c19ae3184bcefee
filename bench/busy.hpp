// SPDX-License-Identifier: BSD-3-Clause
//
// Busy: a neighbour that computes. A thread keeps kernels queued on a stream of its own, on this
// rank's GPU, until the object ends: fills of device memory, which the driver does by kernels in
// the compute queue, some tens of them at any time.
#pragma once

#include "driver.hpp"

#include <atomic>
#include <thread>

namespace gantry::bench {

class Busy {
  public:
    // Needs a started driver. Kernels are queued when it returns.
    Busy();
    ~Busy();
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

  private:
    static constexpr int kBatches = 3;
    void queue(int batch);
    void run();
    CUstream stream_ = nullptr;
    CUevent done_[kBatches] = {};
    CUdeviceptr memory_ = 0;
    std::atomic<bool> over_{false};
    std::thread thread_;
};

}  // namespace gantry::bench
