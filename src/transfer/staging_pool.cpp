// SPDX-License-Identifier: BSD-3-Clause
#include "transfer/staging_pool.hpp"

#include "base/log.hpp"

#include <new>
#include <utility>

namespace gantry::transfer {
namespace {

std::size_t index_of(transport::Pool which) {
    return static_cast<std::size_t>(which);
}

}  // namespace

StagingPools::StagingPools(device::Device& device,
                           const std::vector<transport::Transport*>& transports, int world_rank,
                           const config::Config& config, std::function<void()> warmed)
    : device_(device),
      transports_(transports),
      world_rank_(world_rank),
      config_(config),
      warmed_(std::move(warmed)) {}

StagingPools::~StagingPools() {
    for (auto& [transport, region] : regions_)
        transport->release_memory(region);
}

Result<std::span<std::byte>> StagingPools::memory_of(transport::Pool which) {
    Status refused;
    for (transport::Transport* candidate : transports_) {
        transport::SharedSegment* const segment = candidate->shared_segment(world_rank_);
        if (segment == nullptr) continue;
        auto own = segment->pool(which);
        if (own.ok() && !own->empty()) return *own;
        if (!own.ok() && own.status().error_class() != MPI_ERR_UNSUPPORTED_OPERATION)
            refused = own.status();
    }
    if (!refused.ok()) return refused;
    // No transport shares memory: the slots are ours alone.
    private_slots_.reset(new (std::nothrow) std::byte[config_.device_pool]);
    if (private_slots_ == nullptr)
        return failure(MPI_ERR_NO_MEM,
                       "no memory for {} bytes of staging slots (GANTRY_DEVICE_POOL)",
                       config_.device_pool);
    return std::span(private_slots_.get(), config_.device_pool);
}

bool StagingPools::page_lock(std::span<std::byte> slots) {
    if (!device_.active()) return false;
    if (!std::exchange(warm_, true) && warmed_) warmed_();
    Status pinned = device_.pin(slots.data(), slots.size());
    if (!pinned.ok())
        log::warn("staging slots stay pageable, copies are slower: {}", pinned.text());
    return true;
}

Result<SlotPool*> StagingPools::own(transport::Pool which) {
    std::optional<SlotPool>& pool = pools_[index_of(which)];
    const bool for_device = which == transport::Pool::device_slots;
    if (!pool) {
        auto memory = memory_of(which);
        if (!memory.ok()) return memory.status();
        if (for_device)
            pool.emplace(*memory, kDeviceSlotUnit,
                         [this](std::span<std::byte> region) { return page_lock(region); });
        else
            pool.emplace(*memory, config_.host_cell);
    }
    return &*pool;
}

Result<transport::Region> StagingPools::region(transport::Transport& transport) {
    auto slots = own(transport::Pool::device_slots);
    if (!slots.ok()) return slots.status();
    auto known = regions_.find(&transport);
    if (known == regions_.end()) {
        auto region = transport.register_memory(
            {.address = (*slots)->memory().data(), .bytes = (*slots)->memory().size()});
        if (!region.ok()) return region.status();
        known = regions_.emplace(&transport, *region).first;
    }
    return known->second;
}

// What the owner page-locks at a time is page-locked here at a time: no slot crosses its border.
void StagingPools::page_lock(Endpoint& owner, transport::Pool which, std::span<std::byte> pool,
                             Bytes offset) {
    std::optional<LockedRegions>& locked = owner.locked_slots[index_of(which)];
    if (!locked) {
        locked.emplace(pool, kDeviceSlotUnit, which == transport::Pool::device_slots);
        owner.memory.prices_changed();
    }
    locked->take(locked->regions().of(static_cast<std::uint32_t>(offset / kDeviceSlotUnit)),
                 [&](std::span<std::byte> region) {
                     Status pinned = device_.pin(region.data(), region.size());
                     if (!pinned.ok())
                         log::warn("slots of rank {} stay pageable here, copies are slower: {}",
                                   owner.rank, pinned.text());
                     return true;
                 });
}

Result<std::byte*> StagingPools::slot_of(Endpoint& owner, transport::Pool which, Bytes offset,
                                         bool for_device) {
    auto memory = owner.shared->pool(which);
    if (!memory.ok()) return memory.status();
    if (offset >= memory->size())
        return failure(MPI_ERR_INTERN, "rank {} names a slot at {} of a pool of {} bytes",
                       owner.rank, offset, memory->size());
    if (for_device) page_lock(owner, which, *memory, offset);
    return memory->data() + offset;
}

void StagingPools::release(transport::Pool which, std::uint32_t unit, std::uint32_t units) {
    if (std::optional<SlotPool>& pool = pools_[index_of(which)]) pool->release(unit, units);
}

void StagingPools::unpin(Endpoint& owner) {
    for (std::optional<LockedRegions>& locked : owner.locked_slots) {
        if (locked) unpin(*locked);
        locked.reset();
    }
}

void StagingPools::unpin(LockedRegions& locked) {
    locked.drop([this](std::span<std::byte> region) { device_.unpin(region.data()); });
}

bool StagingPools::drop_private_slots() {
    if (private_slots_ == nullptr) return true;
    for (const std::optional<SlotPool>& pool : pools_)
        if (pool && pool->free_units() < pool->total_units()) return false;
    for (auto& [transport, region] : regions_)
        transport->release_memory(region);
    regions_.clear();
    for (std::optional<SlotPool>& pool : pools_) {
        if (pool) unpin(pool->locked());
        pool.reset();
    }
    private_slots_.reset();
    return true;
}

void StagingPools::take_back(int rank) {
    for (std::optional<SlotPool>& pool : pools_)
        if (pool) pool->take_back(rank);
}

}  // namespace gantry::transfer
