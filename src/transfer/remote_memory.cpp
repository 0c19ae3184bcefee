// SPDX-License-Identifier: BSD-3-Clause
#include "transfer/remote_memory.hpp"

namespace gantry::transfer {

namespace {

constexpr std::size_t kRemembered = 4096;  // allocations

std::unordered_set<std::uint64_t>& bounded(std::unordered_set<std::uint64_t>& buffers) {
    if (buffers.size() >= kRemembered) buffers.clear();
    return buffers;
}

}  // namespace

void RemoteMemory::staged(const wire::Handle& source, const device::Location& sink, Open open) {
    if (source.kind != device::IpcKind::none && !open.get) staged_gets_.count(source.buffer_id);
    const bool sink_exportable = sink.on_device() && sink.ipc != device::IpcKind::none;
    if (sink_exportable && !open.put) staged_puts_.count(sink.buffer_id);
}

void RemoteMemory::put(std::uint64_t sink) {
    staged_puts_.forget(sink);
    if (bounded(put_open_).insert(sink).second) ++epoch_;
}

void RemoteMemory::put_closed(std::uint64_t sink) {
    ++epoch_;
    put_open_.erase(sink);
}

void RemoteMemory::put_refused(std::uint64_t sink) {
    ++epoch_;
    put_open_.erase(sink);
    bounded(put_refused_).insert(sink);
}

void RemoteMemory::ask_for(std::uint64_t source) {
    if (bounded(asked_for_).insert(source).second) ++epoch_;
}

void RemoteMemory::freed(std::uint64_t sink) {
    ++epoch_;
    asked_for_.erase(sink);
    put_open_.erase(sink);
    put_refused_.erase(sink);
    staged_puts_.forget(sink);
}

}  // namespace gantry::transfer
