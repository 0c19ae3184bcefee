// SPDX-License-Identifier: BSD-3-Clause
#include "p2p/mappings.hpp"

namespace gantry::p2p {

namespace {

constexpr std::size_t kRemembered = 4096;  // allocations in each table

template <class Table>
Table& bounded(Table& table) {
    if (table.size() >= kRemembered) table.clear();
    return table;
}

}  // namespace

void Mappings::staged(const wire::Handle& source, const device::Location& sink, Open open) {
    if (source.kind != 0 && !open.get) ++bounded(staged_gets_)[source.buffer_id];
    const bool sink_exportable = sink.on_device() && sink.ipc != device::IpcKind::none;
    if (sink_exportable && !open.put) ++bounded(staged_puts_)[sink.buffer_id];
}

void Mappings::put(std::uint64_t sink) {
    staged_puts_.erase(sink);
    bounded(put_open_).insert(sink);
}

void Mappings::put_closed(std::uint64_t sink) {
    put_open_.erase(sink);
}

void Mappings::put_refused(std::uint64_t sink) {
    put_open_.erase(sink);
    bounded(put_refused_).insert(sink);
}

void Mappings::freed(std::uint64_t sink) {
    put_open_.erase(sink);
    put_refused_.erase(sink);
    staged_puts_.erase(sink);
}

}  // namespace gantry::p2p
