// SPDX-License-Identifier: BSD-3-Clause
//
// ReduceLauncher: predefined reductions by kernels of one context (device/kernels/reduce_*.cu), one
// launch each. Its modules are loaded when their first kernel is used.
#pragma once

#include "device/cuda/kernel_module.hpp"
#include "device/device.hpp"
#include "device/reduce_kernels.hpp"

#include <array>

namespace gantry::device::cuda {

class ReduceLauncher {
  public:
    ReduceLauncher(Driver& driver, const Context& context, bool wanted)
        : driver_(driver),
          gpu_(context.gpu),
          integers_(driver, wanted),
          reals_(driver, wanted),
          pairs_(driver, wanted) {}

    // With the context current, before anybody waits: what is loaded quickly.
    void make_ready();
    // Queues it in `stream`, with its context current. False: no kernel can make it, and nothing is
    // queued; or the context is dead, as the next call there will find.
    bool start(const Reduce& reduce, CUstream stream);
    // With the context current, before it goes.
    void close();
    // The context is gone, and the kernels with it.
    void abandon();

  private:
    KernelModule* load(ReduceKernelName name);

    Driver& driver_;
    int gpu_;
    KernelModule integers_, reals_, pairs_;
    std::array<CUfunction, kReduceKernels> kernels_{};
};

}  // namespace gantry::device::cuda
