// SPDX-License-Identifier: BSD-3-Clause
#include "transfer/export_table.hpp"

#include "base/log.hpp"

#include <utility>

namespace gantry::transfer {
namespace {

constexpr Nanoseconds kBetweenLooks = 10 * kMillisecond;
constexpr int kMostInOneLook = 256;  // 36 us of the driver's time (H100)

}  // namespace

device::IpcHandle ExportTable::name(int peer, const device::Location& location) {
    Result<device::IpcHandle> handle = device_.export_memory(location);
    if (!handle.ok()) return {};
    note(peer, *handle);
    return *handle;
}

device::IpcHandle ExportTable::export_lazily(int peer, const device::Location& location) {
    if (location.ipc != device::IpcKind::legacy || knows(peer, location.buffer_id))
        return name(peer, location);
    device::IpcHandle handle;
    handle.kind = location.ipc;
    handle.buffer_id = location.buffer_id;
    handle.size = location.size;
    return handle;
}

void ExportTable::note(int peer, const device::IpcHandle& handle) {
    Row& row = rows_[handle.buffer_id];
    row.handle = handle;
    row.peers.insert(peer);
}

void ExportTable::send_descriptor(std::uint64_t buffer_id, std::uint32_t inbox) {
    const auto row = rows_.find(buffer_id);
    if (row == rows_.end()) return;  // freed since
    Status sent = device_.send_descriptor(row->second.handle, inbox);
    if (!sent.ok()) log::info("p2p: messages from an allocation stay staged: {}", sent.text());
}

std::vector<ExportTable::Row> ExportTable::take_freed(Nanoseconds now) {
    std::vector<Row> freed;
    if (rows_.empty() || now < next_look_) return freed;
    next_look_ = now + kBetweenLooks;
    auto at = rows_.lower_bound(next_);
    for (int looked = 0; looked < kMostInOneLook && at != rows_.end(); ++looked) {
        if (device_.still_valid(at->second.handle)) {
            ++at;
            continue;
        }
        freed.push_back(std::move(at->second));
        at = rows_.erase(at);
    }
    next_ = at != rows_.end() ? at->first : 0;
    return freed;
}

}  // namespace gantry::transfer
