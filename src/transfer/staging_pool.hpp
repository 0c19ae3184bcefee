// SPDX-License-Identifier: BSD-3-Clause
//
// StagingPools: this rank's two pools of slots (cells for host messages, pinned slots for device
// messages), made at their first use, and the pools of peers as mapped here.
#pragma once

#include "base/config.hpp"
#include "device/device.hpp"
#include "transfer/endpoint.hpp"
#include "transfer/slots.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace gantry::transfer {

class StagingPools {
  public:
    // All references outlive this. `warmed`: called when the first slot for device messages was
    // page-locked.
    StagingPools(device::Device& device, const std::vector<transport::Transport*>& transports,
                 int world_rank, const config::Config& config, std::function<void()> warmed = {});
    ~StagingPools();
    StagingPools(const StagingPools&) = delete;
    StagingPools& operator=(const StagingPools&) = delete;

    // This rank's staging memory, reserved at first use. Device slots are page-locked as they are taken.
    Result<SlotPool*> own(transport::Pool which);
    // The registration of the device slots with a transport: puts go into slots and out of them.
    Result<transport::Region> region(transport::Transport& transport);
    // A peer's shared slot as mapped here; page-locked when a device will read it.
    Result<std::byte*> slot_of(Endpoint& owner, transport::Pool which, Bytes offset,
                               bool for_device);
    // No slot for device messages was page-locked: of our own, which we send through, or of that
    // peer's, out of which we receive. They count as warm where messages did without them so often
    // that slots would have been cheaper.
    bool are_cold(const Endpoint& peer, bool own) const {
        if (did_without_ >= plan::kMostWithoutSlots) return false;
        return own ? !warm_
                   : !peer.locked_slots[static_cast<std::size_t>(transport::Pool::device_slots)]
                          .has_value();
    }
    // A message took no slot because they are cold.
    void did_without() {
        if (++did_without_ == plan::kMostWithoutSlots && warmed_) warmed_();
    }
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
    bool page_lock(std::span<std::byte> slots);
    void unpin(LockedRegions& locked);
    void page_lock(Endpoint& owner, transport::Pool which, std::span<std::byte> pool, Bytes offset);

    device::Device& device_;
    const std::vector<transport::Transport*>& transports_;
    const int world_rank_;
    const config::Config& config_;
    const std::function<void()> warmed_;
    bool warm_ = false;
    int did_without_ = 0;
    std::optional<SlotPool> pools_[2];
    std::unique_ptr<std::byte[]> private_slots_;  // device slots when no transport shares memory
    std::map<transport::Transport*, transport::Region> regions_;
};

}  // namespace gantry::transfer
