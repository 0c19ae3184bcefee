// SPDX-License-Identifier: BSD-3-Clause
#include "rma/attachments.hpp"

#include <algorithm>

namespace gantry::rma {

Bytes Attachments::bytes_of(Room room) {
    const Bytes all =
        sizeof(Used) + room.names * sizeof(device::IpcHandle) + Bytes{room.regions} * sizeof(Entry);
    return round_up(all, alignof(Used));
}

Attachments::Attachments(std::byte* memory, Room room)
    : room_(room),
      used_(reinterpret_cast<Used*>(memory)),
      names_(reinterpret_cast<device::IpcHandle*>(memory + sizeof(Used))),
      entries_(reinterpret_cast<Entry*>(names_ + room.names)) {}

int Attachments::name_of(const device::IpcHandle& handle) {
    for (std::uint32_t i = 0; i < used_->names; ++i)
        if (names_[i].buffer_id == handle.buffer_id) return static_cast<int>(i);
    const auto is_used = [this](std::uint32_t name) {
        for (std::uint32_t i = 0; i < used_->entries.load(std::memory_order_relaxed); ++i)
            if (at(i).bytes != 0 && at(i).name == static_cast<std::int32_t>(name)) return true;
        return false;
    };
    std::uint32_t place = 0;
    while (place < used_->names && is_used(place))
        ++place;
    if (place == room_.names) return -1;
    used_->names = std::max(used_->names, place + 1);
    names_[place] = handle;
    return static_cast<int>(place);
}

bool Attachments::add(std::uint64_t base, Bytes bytes, const device::IpcHandle* of_device) {
    if (bytes == 0) return true;
    int name = -1;
    if (of_device != nullptr) {
        name = name_of(*of_device);
        if (name < 0) return false;
    }
    const std::uint32_t used = used_->entries.load(std::memory_order_relaxed);
    std::uint32_t place = 0;
    while (place < used && entries_[place].bytes.load(std::memory_order_relaxed) != 0)
        ++place;
    if (place == room_.regions) return false;
    Entry& entry = entries_[place];
    entry.base.store(base, std::memory_order_relaxed);
    entry.name.store(name, std::memory_order_relaxed);
    // Pairs with the acquires in at() and find().
    entry.bytes.store(bytes, std::memory_order_release);
    if (place == used) used_->entries.store(used + 1, std::memory_order_release);
    return true;
}

void Attachments::remove(std::uint64_t base) {
    const std::uint32_t used = used_->entries.load(std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < used; ++i) {
        Entry& entry = entries_[i];
        if (entry.base.load(std::memory_order_relaxed) != base) continue;
        entry.bytes.store(0, std::memory_order_release);
    }
}

Attachments::Region Attachments::at(std::uint32_t number) const {
    const Entry& entry = entries_[number];
    Region region;
    region.bytes = entry.bytes.load(std::memory_order_acquire);
    region.base = entry.base.load(std::memory_order_relaxed);
    region.name = entry.name.load(std::memory_order_relaxed);
    return region;
}

bool Attachments::has_named(const device::IpcHandle& handle) const {
    const std::uint32_t used = used_->entries.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < used; ++i) {
        const Region region = at(i);
        if (region.bytes != 0 && region.name >= 0 && name(region.name) == handle) return true;
    }
    return false;
}

Attachments::Region Attachments::find(std::uint64_t address, std::uint32_t& hint) const {
    const std::uint32_t used = used_->entries.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i <= used; ++i) {
        const std::uint32_t number = i == 0 ? hint : i - 1;
        if (number >= used) continue;
        const Region region = at(number);
        if (address - region.base >= region.bytes) continue;
        hint = number;
        return region;
    }
    return {};
}

}  // namespace gantry::rma
