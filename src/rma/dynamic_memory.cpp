// SPDX-License-Identifier: BSD-3-Clause
//
// Memory of dynamic windows. Others name it by its address. Ranks of the same node see what is attached
// (attachments.hpp) and reach it themselves; for all others the owner judges.
#include "rma/windows.hpp"

#include "base/log.hpp"
#include "transfer/buffer.hpp"

#include <algorithm>
#include <limits>

namespace gantry::rma {
namespace {

// Whether one copy may touch both.
bool is_same_memory(const device::Location& one, const device::Location& other) {
    if (one.on_device() || other.on_device())
        return one.kind == other.kind && one.buffer_id == other.buffer_id;
    return true;
}

}  // namespace

Status DynamicMemory::attach(void* base, Bytes bytes) {
    const auto address = reinterpret_cast<std::uintptr_t>(base);
    for (const Attached& each : attached_)
        if (bytes > 0 && address < each.base + each.bytes && each.base < address + bytes)
            return failure(MPI_ERR_RMA_ATTACH,
                           "{} bytes at {} overlap {} bytes at {:#x}, which are attached already",
                           bytes, base, each.bytes, each.base);
    Result<device::Location> location = windows.context.locate(transfer::bytes_buffer(base, bytes));
    if (!location.ok())
        return failure(MPI_ERR_RMA_ATTACH, "the memory to attach: {}", location.status().text());
    attached_.push_back({address, bytes, *location});
    publish(attached_.back());
    return success();
}

Status DynamicMemory::detach(const void* base) {
    const auto address = reinterpret_cast<std::uintptr_t>(base);
    const auto found = std::find_if(attached_.begin(), attached_.end(),
                                    [address](const Attached& a) { return a.base == address; });
    if (found == attached_.end())
        return failure(MPI_ERR_RMA_ATTACH, "nothing is attached to the window at {}", base);
    if (mine().attachments.has_value()) mine().attachments->remove(address);
    attached_.erase(found);
    return success();
}

Attachments::Room DynamicMemory::room_for_attachments() const {
    const config::Config& config = windows.context.config;
    const auto places = [](config::Integer number) {
        return static_cast<std::uint32_t>(
            std::min<config::Integer>(number, std::numeric_limits<std::int32_t>::max()));
    };
    return {places(config.window_attachments), places(config.window_attached_allocations)};
}

// To the ranks of this node. What cannot be told, or mapped by them, they reach by message.
void DynamicMemory::publish(const Attached& attached) {
    std::optional<Attachments>& table = mine().attachments;
    if (!table.has_value()) return;
    bool told = false;
    if (transfer::in_host_memory(attached.location)) {
        told = table->add(attached.base, attached.bytes, nullptr);
    } else if (attached.location.ipc == device::IpcKind::legacy) {
        const device::IpcHandle handle = window.name_device(attached.location).handle;
        told = handle.kind == device::IpcKind::legacy && handle.origin != 0 &&
               table->add(attached.base, attached.bytes, &handle);
    }
    if (!told) log::debug("rma: {} attached bytes are reached by messages", attached.bytes);
}

bool DynamicMemory::reaches_attached(const Access& access, std::uint64_t address) {
    Target& of = target(access.target);
    const layout::Span span = layout::span_of(*access.layout, access.count);
    std::uint64_t at = address + static_cast<std::uint64_t>(span.low);
    Bytes left = span.bytes();
    std::int32_t name = 0;
    // Regions that touch are one for who names bytes of both.
    for (bool is_first = true; left > 0; is_first = false) {
        const Attachments::Region region = of.attachments->find(at, of.last_attachment);
        if (region.bytes == 0 || (!is_first && region.name != name)) return false;
        name = region.name;
        const Bytes some = std::min(left, region.bytes - (at - region.base));
        at += some;
        left -= some;
    }
    if (name < 0) return of.process != 0;
    return mapped_region(of, of.attachments->name(name)).mapping.is_open();
}

const Target::MappedRegion& DynamicMemory::mapped_region(Target& of,
                                                         const device::IpcHandle& handle) {
    for (const Target::MappedRegion& each : of.mapped_regions)
        if (each.handle == handle) return each;
    device::Device& device = windows.context.device;
    // What was detached may have been freed, which takes effect when nobody maps it any more.
    std::erase_if(of.mapped_regions, [&of](const Target::MappedRegion& each) {
        return !of.attachments->has_named(each.handle);
    });
    Target::MappedRegion region{handle, {}};
    if (device.active() && device.gpu_count() > 0) {
        Result<transfer::Mapping> mapping = transfer::Mapping::open_by_any(
            device, handle, transfer::Mapping::gpu_for(device, handle));
        if (mapping.ok()) region.mapping = std::move(*mapping);
    }
    of.mapped_regions.push_back(std::move(region));
    return of.mapped_regions.back();
}

void DynamicMemory::locate_attached(Target& of, std::uint64_t address, Side& side) {
    const Attachments::Region region = of.attachments->find(address, of.last_attachment);
    if (region.bytes == 0 || region.name < 0) return;
    const transfer::Mapping& mapping = mapped_region(of, of.attachments->name(region.name)).mapping;
    side.buffer.address = mapping.at(reinterpret_cast<std::uintptr_t>(side.buffer.address));
    side.location = mapping.location();
}

// Attached regions that touch are one for who names bytes of both.
const DynamicMemory::Attached* DynamicMemory::attached_around(std::uint64_t address,
                                                              Bytes bytes) const {
    const Attached* const first = attached_at(address, bytes);
    const Attached* at = first;
    while (at != nullptr) {
        const Bytes inside = at->bytes - (address - at->base);
        if (bytes <= inside) return first;
        address += inside;
        bytes -= inside;
        at = attached_at(address, bytes);
        if (at != nullptr && !is_same_memory(at->location, first->location)) return nullptr;
    }
    return nullptr;
}

// The region that holds the first byte there; of no bytes one that ends there will do.
const DynamicMemory::Attached* DynamicMemory::attached_at(std::uint64_t address,
                                                          Bytes bytes) const {
    for (const Attached& each : attached_)
        if (address - each.base < each.bytes || (bytes == 0 && address - each.base == each.bytes))
            return &each;
    return nullptr;
}

Status DynamicMemory::check_attached(const Access& access, std::uint64_t address) const {
    const layout::Span span = layout::span_of(*access.layout, access.count);
    if (attached_around(address + static_cast<std::uint64_t>(span.low), span.bytes()) != nullptr)
        return success();
    return failure(MPI_ERR_RMA_RANGE, "{} bytes at {:#x} are not attached to the window",
                   span.bytes(), address);
}

}  // namespace gantry::rma
