// SPDX-License-Identifier: BSD-3-Clause
//
// The short way of a device message that is read straight out of the sender's memory, when the one
// before it from the same memory was: no question to the planner, no record of the message, no
// coroutine. Programs send windows of such messages, and what each costs the processor is what
// limits their rate. receive.cpp has the whole protocol and says what may go this way.
#include "p2p/protocols/short_copy.hpp"
#include "p2p/protocols/stage.hpp"

#include "base/log.hpp"

#include <new>

namespace gantry::p2p {

// A peer's allocation as it is mapped here, opened by the first of the reads that use it at once
// and closed by the last.
struct OpenMemory {
    device::IpcHandle handle;
    int gpu;
    const std::byte* mapped;  // where handle.base is here
    std::uint64_t losses;     // of the device, when it was opened
    unsigned readers;
};

namespace {

void release(Core& core, int from, OpenMemory& memory) {
    if (--memory.readers > 0) return;
    core.device.close_memory(memory.handle, memory.gpu);
    Peer::Get& last = core.peer(from).last_get;
    if (last.open == &memory) last.open = nullptr;
    delete &memory;
}

struct Read : ShortCopy {
    using ShortCopy::ShortCopy;
    OpenMemory* source = nullptr;

    Status ended() {
        release(core, peer, *source);
        if (status().ok()) {
            core.read_whole(peer, send_id);
        } else if (core.peer(peer).lost.ok()) {
            const Status told = tell_failure(core, peer, send_id, status(), wire::For::sender);
            if (!told.ok())
                log::error("rank {} was not told of a failed receive: {}", peer, told.text());
        }
        return status();
    }
};

bool like_the_last(const Core& core, const Peer::Get& last, const wire::RequestToSend& rts,
                   const Request& receive, Bytes bytes) {
    return rts.handle.buffer_id == last.source && last.source != 0 && bytes == last.bytes &&
           receive.location.gpu == last.gpu && receive.location.on_device() &&
           wire::expects_get(rts.offer) && receive.buffer.contiguous() &&
           receive.buffer.bytes() >= bytes && !core.explain.on();
}

// The allocation with one more reader; null: it is not mapped.
OpenMemory* one_more_reader(Core& core, Peer::Get& last, const wire::Handle& source) {
    if (last.open != nullptr && last.open->losses == core.device.losses()) {
        ++last.open->readers;
        return last.open;
    }
    const device::IpcHandle handle = wire::decode(source);
    void* const mapped = core.device.open_again(handle, last.gpu);
    if (mapped == nullptr) return nullptr;
    last.open = new (std::nothrow) OpenMemory{
        handle, last.gpu, static_cast<const std::byte*>(mapped), core.device.losses(), 1};
    if (last.open == nullptr) core.device.close_memory(handle, last.gpu);
    return last.open;
}

}  // namespace

bool get_again(Core& core, int from, const wire::RequestToSend& whole,
               const wire::RequestAgain& own, Request& receive, device::Company company) {
    Peer::Get& last = core.peer(from).last_get;
    if (!like_the_last(core, last, whole, receive, own.envelope.bytes)) return false;
    void* memory = core.executor.allocate_frame(sizeof(Read));
    if (memory == nullptr) return false;
    OpenMemory* source = one_more_reader(core, last, whole.handle);
    if (source == nullptr) {
        core.executor.free_frame(memory);
        return false;
    }
    receive.outcome = {own.envelope.source, own.envelope.tag, last.bytes, false};
    Read& read = *new (memory) Read(core, from, own.send_id, receive);
    read.source = source;
    read.copy.destination = receive.buffer.data();
    read.copy.source = source->mapped + (own.address - source->handle.base);
    read.copy.bytes = last.bytes;
    read.copy.gpu = last.gpu;
    read.copy.engine = last.engine;
    read.copy.notice = last.notice;
    read.copy.company = company;
    run_short_copy(read);
    return true;
}

}  // namespace gantry::p2p
