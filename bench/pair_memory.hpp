// SPDX-License-Identifier: BSD-3-Clause
//
// What the floors reach of the other rank of a pair: host memory that both share, and its device memory.
#pragma once

#include "buffer.hpp"
#include "shared_pinned.hpp"

namespace gantry::bench {

// Both ranks of a pair make it.
class PairMemory : public SharedPinned {
  public:
    explicit PairMemory(Bytes bytes);

  private:
    PairMemory(Place place, Bytes bytes);
};

// A device buffer of the other rank, of the size of mine, mapped here by CUDA IPC.
class PeersDevice {
  public:
    PeersDevice(const Buffer& mine, bool mine_is_device, bool peers_is_device);
    ~PeersDevice();
    PeersDevice(const PeersDevice&) = delete;
    PeersDevice& operator=(const PeersDevice&) = delete;
    CUdeviceptr at(Bytes offset) const { return address_ + offset; }

  private:
    CUdeviceptr address_ = 0;
};

}  // namespace gantry::bench
