// SPDX-License-Identifier: BSD-3-Clause
//
// The short way of a device message that is read straight out of the sender's memory, when the one
// before it from the same memory was: no question to the planner, no record of the message, one
// small coroutine. Programs send windows of such messages, and what each costs the processor is
// what limits their rate. receive.cpp has the whole protocol and says what may go this way.
#include "p2p/protocols/stage.hpp"

#include "base/log.hpp"
#include "base/yield.hpp"

namespace gantry::p2p {
namespace {

Task<Status> get(Executor& executor, Core& core, int from, std::uint64_t send_id, Request& request,
                 device::IpcHandle handle, device::Copy copy) {
    if (executor.hands_over()) co_await Yield(executor);
    Completion copied(executor);
    core.device.copy(copy, copied);
    Status status = co_await copied;
    core.device.close_memory(handle, copy.gpu);
    Status told;
    if (status.ok()) {
        core.read_whole(from, send_id);
    } else if (core.peer(from).lost.ok()) {
        told = tell_failure(core, from, send_id, status, wire::For::sender);
    }
    if (!told.ok()) log::error("rank {} was not told of a failed receive: {}", from, told.text());
    core.finish_request(request, status);
    co_return success();
}

}  // namespace

bool get_again(Core& core, int from, const wire::RequestToSend& rts, Request& request,
               device::Company company) {
    const Peer::Get& last = core.peer(from).last_get;
    if (rts.handle.buffer_id != last.source || rts.envelope.bytes != last.bytes ||
        request.location.gpu != last.gpu || last.source == 0 || !request.location.on_device() ||
        !wire::expects_get(rts.offer) || !request.buffer.contiguous() ||
        request.buffer.bytes() < last.bytes || core.explain.on())
        return false;
    const device::IpcHandle handle = wire::decode(rts.handle);
    if (core.device.access(handle, last.gpu) != device::Access::open) return false;
    Result<void*> mapped = core.device.open_memory(handle, last.gpu);
    if (!mapped.ok()) return false;
    request.outcome = {rts.envelope.source, rts.envelope.tag, last.bytes, false};
    device::Copy copy;
    copy.destination = request.buffer.data();
    copy.source = static_cast<const std::byte*>(*mapped) + (rts.address - handle.base);
    copy.bytes = last.bytes;
    copy.gpu = last.gpu;
    copy.engine = last.engine;
    copy.notice = last.notice;
    copy.company = company;
    core.operations.spawn(get(core.executor, core, from, rts.send_id, request, handle, copy));
    return true;
}

}  // namespace gantry::p2p
