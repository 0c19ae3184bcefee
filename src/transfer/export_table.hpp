// SPDX-License-Identifier: BSD-3-Clause
//
// ExportTable: the allocations of this process that peers of the node were told how to map, and who
// was told. A freed allocation stays in memory until every importer has closed its mapping, so they
// are told of that, too (docs/design/mappings.md).
//
// What names an allocation takes the driver up to 3 us (H100, 1 MiB), once. Of what lies in slots
// before its receiver sees it, the receiver needs no more than what kind of memory it is; if it would
// rather have read it, it asks for the name (wire::Cts::direct_next). Virtual memory has its
// name for nothing, and pools, whose descriptors are to be sent for, always travel with theirs.
#pragma once

#include "base/units.hpp"
#include "device/device.hpp"

#include <cstdint>
#include <map>
#include <unordered_set>
#include <vector>

namespace gantry::transfer {

class ExportTable {
  public:
    struct Row {
        device::IpcHandle handle;
        std::unordered_set<int> peers;  // that were told
    };

    explicit ExportTable(device::Device& device) : device_(device) {}

    bool empty() const { return rows_.empty(); }
    bool knows(int peer, std::uint64_t buffer_id) const {
        const auto row = rows_.find(buffer_id);
        return row != rows_.end() && row->second.peers.contains(peer);
    }
    // What that peer maps the allocation by, which it is told with this; kind `none`: the driver does
    // not share it.
    device::IpcHandle name(int peer, const device::Location& location);
    // The same where the peer may as well do without for now: then its kind, identity and size alone
    // (origin 0).
    device::IpcHandle export_lazily(int peer, const device::Location& location);
    // It was told of memory that was exported elsewhere.
    void note(int peer, const device::IpcHandle& handle);
    // What that peer was told of.
    std::vector<device::IpcHandle> told(int peer) const {
        std::vector<device::IpcHandle> handles;
        for (const auto& [buffer_id, row] : rows_)
            if (row.peers.contains(peer)) handles.push_back(row.handle);
        return handles;
    }
    // That peer is gone for good.
    void forget(int peer) {
        for (auto& [buffer_id, row] : rows_)
            row.peers.erase(peer);
    }
    // A peer wants to open an allocation that was named to it: sends the file descriptor behind it.
    void send_descriptor(std::uint64_t buffer_id, std::uint32_t inbox);
    // Those that the program has freed. Looks now and then, at a part of them.
    std::vector<Row> take_freed(Nanoseconds now);

  private:
    device::Device& device_;
    std::map<std::uint64_t, Row> rows_;  // by buffer id
    Nanoseconds next_look_ = 0;
    std::uint64_t next_ = 0;  // the next look begins here
};

}  // namespace gantry::transfer
