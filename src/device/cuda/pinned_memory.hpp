// SPDX-License-Identifier: BSD-3-Clause
//
// PinnedMemory: page-locked memory that host and GPU share for words of our own: flags, tables,
// rings. It is ours and only registered with the driver, so a context that the program destroys
// takes nothing away from under a load.
#pragma once

#include "base/units.hpp"
#include "device/cuda/context.hpp"

namespace gantry::device::cuda {

class PinnedMemory {
  public:
    PinnedMemory() = default;
    PinnedMemory(PinnedMemory&& other) noexcept;
    PinnedMemory& operator=(PinnedMemory&&) = delete;
    ~PinnedMemory();

    // Zeroes, registered in the current context. The memory of a refused registration stays, for
    // another attempt.
    CUresult reserve(Driver& driver, Bytes bytes);
    bool registered() const { return device_ != 0; }
    std::byte* memory() const { return memory_; }
    // Where the GPU sees it.
    CUdeviceptr device() const { return device_; }
    // With the context current. The memory stays until the object goes.
    void close(Driver& driver);
    // The context is gone, and the registration with it.
    void abandon() { device_ = 0; }

  private:
    std::byte* memory_ = nullptr;
    CUdeviceptr device_ = 0;
    Bytes bytes_ = 0;
};

}  // namespace gantry::device::cuda
