// SPDX-License-Identifier: BSD-3-Clause
//
// Device memory of a window, mapped into the other ranks of its node when the window is made: it lives
// as long as a window does, so it is not asked whether a mapping repays itself. Memory that needs a file
// descriptor beside its name is sent that before the ranks meet. Where a mapping is refused, operations
// go by message.
#include "rma/windows.hpp"

#include "base/log.hpp"

#include <algorithm>

namespace gantry::rma {

bool Window::on_my_node(int of_rank) {
    return of_rank != rank() &&
           windows.context.endpoints.to(target(of_rank).peer).facts.shared_memory;
}

Window::DeviceName Window::name_device(const device::Location& location) {
    DeviceName name{};
    device::Device& device = windows.context.device;
    if (!device.active()) return name;
    name.inbox = device.descriptor_inbox();
    if (!location.on_device() || location.ipc == device::IpcKind::none) return name;
    for (int of_rank = 0; of_rank < size(); ++of_rank)
        if (on_my_node(of_rank))
            name.handle = windows.context.exports.name(target(of_rank).peer, location);
    return name;
}

void Window::send_descriptors(const std::vector<DeviceName>& names) {
    const device::IpcHandle& mine = names[static_cast<std::size_t>(rank())].handle;
    if (mine.kind != device::IpcKind::vmm && mine.kind != device::IpcKind::pool) return;
    for (int of_rank = 0; of_rank < size(); ++of_rank) {
        const std::uint32_t inbox = names[static_cast<std::size_t>(of_rank)].inbox;
        if (inbox != 0 && on_my_node(of_rank))
            windows.context.exports.send_descriptor(mine.buffer_id, inbox);
    }
}

// This process may use one GPU of the node only: that of its own window, which reaches the peers' memory.
int Window::first_gpu_for(const device::IpcHandle& handle, const std::vector<DeviceName>& names) {
    device::Device& device = windows.context.device;
    const device::IpcHandle& mine = names[static_cast<std::size_t>(rank())].handle;
    const int own = mine.kind != device::IpcKind::none ? device.gpu_of(mine.gpu) : -1;
    return own >= 0 && device.reaches(own, handle.gpu) ? own
                                                       : transfer::Mapping::gpu_for(device, handle);
}

void Window::map_devices(const std::vector<DeviceName>& names) {
    device::Device& device = windows.context.device;
    if (!device.active()) return;
    for (int of_rank = 0; of_rank < size(); ++of_rank) {
        const device::IpcHandle& handle = names[static_cast<std::size_t>(of_rank)].handle;
        if (handle.kind == device::IpcKind::none || handle.origin == 0 || !on_my_node(of_rank))
            continue;
        Target& of = target(of_rank);
        Result<transfer::Mapping> mapped =
            transfer::Mapping::open_by_any(device, handle, first_gpu_for(handle, names));
        if (!mapped.ok()) {
            log::info("rma: operations at rank {} go by message: {}", of_rank,
                      mapped.status().text());
            continue;
        }
        of.mapped = std::move(*mapped);
        of.memory = of.mapped.at(of.base);
        of.location = of.mapped.location();
        of.direct = true;
    }
}

void Window::unmap_devices() {
    for (const auto& each : targets) {
        each->mapped = {};
        each->mapped_regions.clear();
    }
}

}  // namespace gantry::rma
