// SPDX-License-Identifier: BSD-3-Clause
//
// The receiver reads the sender's device memory (CUDA IPC): one copy, and a FIN.
//
//   sender                                   receiver
//     | --- RTS [handle, address] ----------> |  opens the memory, if it is not mapped
//     |                                       |  copy
//     | <---------------------------- FIN --- |  with the FINs of the same turn
//
// Into a strided buffer the copy is one kernel, which unpacks out of the mapped memory.
//
// Programs send windows of such messages, and what each costs the processor limits their rate: where
// the memory is mapped the message is one copy that ends by a function (OneCopy).
#include "p2p/protocols/ipc_get.hpp"

#include "p2p/protocols/one_copy.hpp"
#include "p2p/rendezvous_receive.hpp"
#include "transfer/local_move.hpp"
#include "transfer/mapping.hpp"
#include "transfer/shared_mapping.hpp"

namespace gantry::p2p {
namespace {

struct Get : OneCopy {
    using OneCopy::OneCopy;
    transfer::SharedMapping* source = nullptr;

    Status ended() {
        source->release();
        if (status().ok()) {
            messages.queue_fin(peer, send_id);
            messages.count_received(plan::Protocol::ipc, request);
        } else {
            tell_failure(messages, peer, send_id, status(), wire::For::sender);
        }
        return status();
    }
};

}  // namespace

bool is_get_of_mapped_memory(const Messages& messages, const Asked& asked,
                             const plan::Selection& selection) {
    const plan::Plan& plan = selection.plan();
    return plan.protocol == plan::Protocol::ipc && plan.executor == plan::Executor::receiver &&
           selection.facts.ipc_open && wire::expects_get(asked.whole.offer) &&
           !messages.context.is_time_sliced(selection.facts);
}

bool get_at_once(Messages& messages, const Asked& asked, const plan::Selection& selection,
                 Request& receive, device::BatchHint batch) {
    const int from = asked.from.rank;
    const int gpu = receive.location.gpu;
    transfer::SharedMapping* const source =
        transfer::SharedMapping::use(messages.device, asked.from, asked.whole.handle, gpu);
    if (source == nullptr) return false;
    void* const memory = messages.executor.allocate_frame(sizeof(Get));
    if (memory == nullptr) {
        source->release();
        return false;
    }
    // The sender may put the next one, if it knows where it goes.
    messages.with(from).rtr.pays_on(selection.advice().rtr_pays ? gpu : -1);
    receive.outcome = {asked.own.envelope.source, asked.own.envelope.tag, asked.accepted, false};
    Get& get = *new (memory) Get(messages, from, asked.own.send_id, receive);
    get.source = source;
    get.copy.destination = receive.buffer.data();
    get.copy.source = source->at(asked.own.address);
    get.copy.bytes = asked.accepted;
    get.copy.gpu = gpu;
    get.copy.engine = transfer::engine_of(selection.plan());
    get.copy.notice = transfer::notice_of(selection.plan());
    // A mapping that nobody used may have gone with its context: the copy that finds out goes at once,
    // and does not wait in a batch.
    get.copy.batch = source->is_used_once() ? device::BatchHint::unknown : batch;
    run_one_copy(get);
    return true;
}

Task<Status> get_by_ipc(Executor& executor, Receiving& receiving) {
    const wire::Rts& rts = receiving.message.rts;
    const device::IpcHandle& handle = rts.handle;
    device::Device& device = receiving.messages.device;
    const int gpu = copying_gpu(receiving.context(), receiving.side.location, handle.gpu);
    Result<transfer::Mapping> mapping = transfer::Mapping::open(device, handle, gpu);
    GANTRY_CO_TRY(mapping.status());
    receiving.sender().memory.got(handle.buffer_id);
    receiving.message.discard_chunks = true;
    // A sender that copies nothing ahead and expects to be read needs no answer but the end.
    Status status;
    const bool expected = wire::expects_get(rts.offer) || receiving.claimed;
    const bool sliced = receiving.context().is_time_sliced(receiving.verdict.facts);
    if (!expected) status = answer(receiving, wire::Cts{});
    if (status.ok()) {
        std::byte* const source = mapping->at(rts.address);
        const bool inside = sliced && receiving.verdict.question.source.on_device();
        if (!receiving.side.contiguous())
            status = co_await transfer::move_packed(executor, receiving.context(), receiving.side,
                                                    source, device.gpu_of(handle.gpu),
                                                    receiving.accepted, transfer::Way::to_device,
                                                    transfer::notice_of(receiving.plan()));
        else
            status = co_await transfer::direct_copy(
                executor, receiving.context(), receiving.side.at(0), source, receiving.accepted,
                gpu, receiving.plan(), inside);
    }
    // The memory could be mapped; the sender may have been told so, and keeps nothing for another way.
    if (status.error_class() == MPI_ERR_UNSUPPORTED_OPERATION)
        status = failure(MPI_ERR_OTHER, "{}", status.text());
    *mapping = {};
    if (status.ok() && expected && !receiving.claimed && !sliced && receiving.side.on_device() &&
        receiving.side.contiguous() && receiving.accepted == rts.envelope.bytes)
        receiving.messages.with(receiving.message.peer)
            .rtr.pays_on(receiving.verdict.choice.advice.rtr_pays ? gpu : -1);
    if (status.ok())
        status = receiving.messages.send(receiving.message.peer, wire::kFin,
                                         wire::Fin{rts.send_id, MPI_SUCCESS, wire::For::sender});
    co_return status;
}

}  // namespace gantry::p2p
