// SPDX-License-Identifier: BSD-3-Clause
//
// The short way of a device message that is read straight out of the sender's memory, when the one
// before it from the same memory was: no question to the planner, no record of the message, no
// coroutine. Programs send windows of such messages, and what each costs the processor is what
// limits their rate. receive.cpp has the whole protocol and says what may go this way.
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

struct Read : Completion {
    Read(Core& in, int rank, std::uint64_t id, Request& receive, OpenMemory& memory)
        : Completion(in.executor),
          core(in),
          from(rank),
          send_id(id),
          request(receive),
          source(memory) {}
    Core& core;
    const int from;
    const std::uint64_t send_id;
    Request& request;
    OpenMemory& source;
    device::Copy copy;
};

void release(Core& core, int from, OpenMemory& memory) {
    if (--memory.readers > 0) return;
    core.device.close_memory(memory.handle, memory.gpu);
    Peer::Get& last = core.peer(from).last_get;
    if (last.open == &memory) last.open = nullptr;
    delete &memory;
}

void end(Resumable& waiting) {
    Read& read = static_cast<Read&>(Completion::of(waiting));
    Core& core = read.core;
    const int from = read.from;
    release(core, from, read.source);
    if (read.status().ok()) {
        core.read_whole(from, read.send_id);
    } else if (core.peer(from).lost.ok()) {
        const Status told =
            tell_failure(core, from, read.send_id, read.status(), wire::For::sender);
        if (!told.ok())
            log::error("rank {} was not told of a failed receive: {}", from, told.text());
    }
    core.finish_request(read.request, read.status());
    read.~Read();
    core.executor.free_frame(&read);
    core.operations.end();
}

void start(Read& read) {
    read.then(end);
    read.core.device.copy(read.copy, read);
}

void start_later(Resumable& waiting) {
    start(static_cast<Read&>(Completion::of(waiting)));
}

bool like_the_last(const Core& core, const Peer::Get& last, const wire::RequestToSend& rts,
                   const Request& receive, Bytes bytes) {
    return rts.handle.buffer_id == last.source && last.source != 0 && bytes == last.bytes &&
           receive.location.gpu == last.gpu && receive.location.on_device() &&
           wire::expects_get(rts.offer) && receive.buffer.contiguous() &&
           receive.buffer.bytes() >= bytes && !core.explain.on();
}

// The allocation with one more reader; null: it is not mapped.
OpenMemory* open_again(Core& core, Peer::Get& last, const wire::Handle& source) {
    if (last.open != nullptr && last.open->losses == core.device.losses()) {
        ++last.open->readers;
        return last.open;
    }
    const device::IpcHandle handle = wire::decode(source);
    if (core.device.access(handle, last.gpu) != device::Access::open) return nullptr;
    Result<void*> mapped = core.device.open_memory(handle, last.gpu);
    if (!mapped.ok()) return nullptr;
    last.open = new (std::nothrow) OpenMemory{
        handle, last.gpu, static_cast<const std::byte*>(*mapped), core.device.losses(), 1};
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
    OpenMemory* source = open_again(core, last, whole.handle);
    if (source == nullptr) {
        core.executor.free_frame(memory);
        return false;
    }
    receive.outcome = {own.envelope.source, own.envelope.tag, last.bytes, false};
    Read& read = *new (memory) Read(core, from, own.send_id, receive, *source);
    read.copy.destination = receive.buffer.data();
    read.copy.source = source->mapped + (own.address - source->handle.base);
    read.copy.bytes = last.bytes;
    read.copy.gpu = last.gpu;
    read.copy.engine = last.engine;
    read.copy.notice = last.notice;
    read.copy.company = company;
    core.operations.begin();
    if (core.executor.hands_over())
        read.yield_to(start_later);
    else
        start(read);
    return true;
}

}  // namespace gantry::p2p
