// SPDX-License-Identifier: BSD-3-Clause
#include "transfer/anchors.hpp"

#include "base/log.hpp"

#include <algorithm>

namespace gantry::transfer {
namespace {

constexpr Bytes kAnchorBytes = 4096;

bool contains(const std::vector<int>& peers, int peer) {
    return std::find(peers.begin(), peers.end(), peer) != peers.end();
}

}  // namespace

void Anchors::meet(int peer) {
    if (possible_ && !contains(told_, peer) && !contains(untold_, peer)) untold_.push_back(peer);
}

void Anchors::hear(int peer, const device::IpcHandle& anchor) {
    if (!possible_ || !last_end_.on_device()) return;
    meet(peer);
    unopened_.push_back({peer, anchor, last_end_.gpu});
}

bool Anchors::told(int peer) const {
    return contains(told_, peer);
}

void Anchors::forget(int peer) {
    std::erase(told_, peer);
    std::erase(untold_, peer);
    const auto of_peer = [peer](const auto& heard) { return heard.peer == peer; };
    std::erase_if(unopened_, of_peer);
    std::erase_if(open_, [&of_peer](const Open& each) { return of_peer(each.of); });
}

// Memory of our own on the GPU of the last message; of kind none: there is none to be had.
device::IpcHandle Anchors::ours() {
    const device::Uuid& gpu = device_.gpu_facts(last_end_.gpu).uuid;
    std::erase_if(ours_, [this](const auto& handle) { return !device_.still_valid(handle); });
    for (const device::IpcHandle& handle : ours_)
        if (handle.gpu == gpu) return handle;
    // It stays for as long as the device has memory of ours.
    const void* const memory =
        device_.borrow(reinterpret_cast<const void*>(last_end_.base), kAnchorBytes);
    if (memory == nullptr) return {};
    Result<device::Location> location = device_.classify(memory, kAnchorBytes);
    if (!location.ok()) return {};
    Result<device::IpcHandle> handle = device_.export_memory(*location);
    if (!handle.ok()) return {};
    ours_.push_back(*handle);
    return *handle;
}

std::optional<Anchors::Telling> Anchors::next_to_tell() {
    while (!untold_.empty()) {
        const int peer = untold_.back();
        untold_.pop_back();
        const device::IpcHandle handle = ours();
        if (handle.kind != device::IpcKind::legacy) continue;
        told_.push_back(peer);
        return Telling{peer, handle};
    }
    return std::nullopt;
}

// Mappings that went with a context are opened again.
void Anchors::look_for_lost() {
    if (losses_ == device_.losses()) return;
    losses_ = device_.losses();
    std::erase_if(open_, [this](const Open& each) {
        if (device_.access(each.of.handle, each.of.gpu) == device::Access::open) return false;
        unopened_.push_back(each.of);
        return true;
    });
}

int Anchors::open_one() {
    look_for_lost();
    if (unopened_.empty()) return -1;
    const Heard next = unopened_.back();
    unopened_.pop_back();
    if (device_.gpu_of(next.handle.gpu) == next.gpu) return -1;
    for (const Open& each : open_)
        if (each.of.gpu == next.gpu && each.of.handle.gpu == next.handle.gpu) return next.peer;
    Result<Mapping> mapping = Mapping::open_anchor(device_, next.handle, next.gpu);
    if (!mapping.ok()) {
        log::info("openings of rank {}'s memory stay dear: {}", next.peer, mapping.status().text());
        return -1;
    }
    open_.push_back({next, std::move(*mapping)});
    losses_ = device_.losses();
    return next.peer;
}

}  // namespace gantry::transfer
