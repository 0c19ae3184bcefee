// SPDX-License-Identifier: BSD-3-Clause
//
// StagingPools: this rank's two pools of slots (cells for host messages, pinned slots for device
// messages), made at their first use, and the pools of peers as mapped here.
#pragma once

#include "base/config.hpp"
#include "device/device.hpp"
#include "transfer/endpoint.hpp"
#include "transfer/slots.hpp"

#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace gantry::transfer {

class StagingPools {
  public:
    // All references outlive this.
    StagingPools(device::Device& device, const std::vector<transport::Transport*>& transports,
                 int world_rank, const config::Config& config);
    ~StagingPools();
    StagingPools(const StagingPools&) = delete;
    StagingPools& operator=(const StagingPools&) = delete;

    // This rank's staging memory, reserved (and, for device slots, pinned) at first use.
    Result<SlotPool*> own(transport::Pool which);
    // The registration of the device slots with a transport: puts go into slots and out of them.
    Result<transport::Region> region(transport::Transport& transport);
    // A peer's shared slot as mapped here; pinned when a device will read it.
    Result<std::byte*> slot_of(Endpoint& owner, transport::Pool which, Bytes offset,
                               bool for_device);
    // A slot of ours came back.
    void release(transport::Pool which, std::uint32_t unit, std::uint32_t units);
    // That peer's slots are about to be unmapped.
    void unpin(Endpoint& owner);
    // Slots that this process had for itself, when a transport begins to share memory. False: some are in
    // use still.
    bool drop_private_slots();
    // That rank is lost: the slots that it held are free.
    void take_back(int rank);

  private:
    Result<std::span<std::byte>> memory_of(transport::Pool which);

    device::Device& device_;
    const std::vector<transport::Transport*>& transports_;
    const int world_rank_;
    const config::Config& config_;
    std::optional<SlotPool> pools_[2];
    std::unique_ptr<std::byte[]> private_slots_;  // device slots when no transport shares memory
    std::map<transport::Transport*, transport::Region> regions_;
    bool slots_pinned_ = false;
};

}  // namespace gantry::transfer
