// SPDX-License-Identifier: BSD-3-Clause
//
// The receiver's side of a rendezvous: sees both ends, asks the planner for the verdict, answers
// with it, and takes the bytes in. When a plan turns out impossible (a mapping is refused) the
// planner is asked again without it: everything still works, staged.
#include "p2p/rendezvous_receive.hpp"

#include "base/log.hpp"
#include "base/yield.hpp"
#include "p2p/eager.hpp"

namespace gantry::p2p {

Status answer(Receiving& receiving, wire::Cts cts, const transport::RemoteKey& key,
              const std::vector<std::uint32_t>& grants) {
    cts.send_id = receiving.message.rts.send_id;
    cts.verdict = wire::encode(receiving.plan());
    cts.accepted = receiving.accepted;
    cts.direct_next = receiving.verdict.direct_next;
    if (receiving.verdict.wants_descriptor) {
        cts.wanted = receiving.message.rts.handle.buffer_id;
        cts.inbox = receiving.messages.device.descriptor_inbox();
    }
    cts.cannot_read = wire::offers_read(receiving.message.rts.offer) &&
                      receiving.verdict.facts.reads == plan::Reads::refused;
    receiving.answered = true;
    cts.key_bytes = key.length;
    std::vector<std::byte> payload(key.view().begin(), key.view().end());
    const auto granted = std::as_bytes(std::span(grants));
    payload.insert(payload.end(), granted.begin(), granted.end());
    return receiving.messages.send(receiving.message.peer, wire::kCts, cts, payload);
}

Status return_slot(Receiving& receiving, const wire::Chunk& chunk) {
    return receiving.messages.send(receiving.message.peer, wire::kCredit, wire::credit_for(chunk));
}

namespace {

// Carries the verdict out.
Task<Status> carry_out(Executor& executor, Receiving& receiving) {
    const plan::Plan& plan = receiving.plan();
    Status status;
    if (receiving.sender().facts.self) {
        status = co_await copy_locally(executor, receiving);
    } else if (plan.protocol == plan::Protocol::ipc) {
        if (plan.executor == plan::Executor::sender)
            status = co_await let_sender_put(executor, receiving);
        // `plan` has changed when the sender did not come.
        if (status.ok() && plan.executor == plan::Executor::receiver)
            status = co_await get_by_ipc(executor, receiving);
    } else if (plan.protocol == plan::Protocol::rdma && plan.executor == plan::Executor::receiver) {
        status = co_await get_exposed(executor, receiving);
    } else if (plan.protocol == plan::Protocol::cma) {
        status = co_await read_by_cma(executor, receiving);
    } else if (receiving.shared) {
        status = answer(receiving, wire::Cts{});
        if (status.ok()) status = co_await take_chunks(executor, receiving);
    } else if (plan.sink_stage == plan::Stage::slot) {
        status = co_await take_puts_in_slots(executor, receiving);
    } else {
        status = co_await take_puts_directly(executor, receiving);
    }
    co_return status;
}

// Whether the message goes another way after that failure, which the facts say by now.
bool goes_another_way(Receiving& receiving, const Asked& asked, const Status& status) {
    Verdict& verdict = receiving.verdict;
    const plan::Plan& plan = verdict.plan();
    const bool unsupported = status.error_class() == MPI_ERR_UNSUPPORTED_OPERATION;
    if (receiving.sender().facts.self) return false;
    if (plan.protocol == plan::Protocol::ipc && unsupported) {
        log::info("p2p: message from rank {} is staged: {}", receiving.message.peer, status.text());
        (plan.executor == plan::Executor::receiver ? verdict.question.source
                                                   : verdict.question.sink)
            .ipc = device::IpcKind::none;
        // The sender will not put any more, whatever it is told.
        if (receiving.claimed) verdict.question.sink.ipc = device::IpcKind::none;
        return true;
    }
    if (plan.protocol == plan::Protocol::ipc && status.error_class() == MPI_ERR_PENDING) {
        look_at_mappings(receiving.context(), asked, verdict);  // it has to repay itself again
        return true;
    }
    if (plan.protocol == plan::Protocol::cma && unsupported) {
        log::info("p2p: message from rank {} goes through slots: {}", receiving.message.peer,
                  status.text());
        verdict.facts.reads = plan::Reads::refused;
        return true;
    }
    const bool puts_directly = !receiving.shared && plan.protocol != plan::Protocol::ipc &&
                               plan.sink_stage == plan::Stage::direct;
    if (puts_directly && !receiving.answered && unsupported &&
        verdict.facts.sink_reach != plan::Reach::nothing) {
        log::info("p2p: message from rank {} is staged: {}", receiving.message.peer, status.text());
        verdict.facts.sink_reach = plan::Reach::nothing;
        return true;
    }
    return false;
}

Task<Status> run(Executor& executor, Receiving& receiving) {
    Messages& messages = receiving.messages;
    Incoming& message = receiving.message;
    if (wire::is_eager(message.rts.offer)) {
        Status taken =
            co_await take_payload(executor, messages, message, receiving.side, receiving.accepted);
        co_return taken;
    }
    receiving.shared = receiving.sender().facts.shared_memory;
    const wire::RtsFromTemplate own = message.rts.own();
    const Asked asked{receiving.sender(), message.rts, own, *message.request, receiving.accepted};
    if (message.verdict) {
        receiving.verdict = *message.verdict;
    } else {
        gather(messages.context, asked, receiving.verdict);
        decide(messages.context, asked, receiving.verdict);
    }
    Status status;
    while (true) {
        messages.explain.record(receiving.verdict.question, receiving.verdict.choice, message.peer,
                                true);
        status = co_await carry_out(executor, receiving);
        if (status.ok() || !goes_another_way(receiving, asked, status)) break;
        decide(messages.context, asked, receiving.verdict);
    }
    co_return status;
}

void count(const Receiving& receiving) {
    const bool eager = wire::is_eager(receiving.message.rts.offer);
    Messages& messages = receiving.messages;
    messages.count_received(eager ? plan::Protocol::eager : receiving.plan().protocol,
                            *receiving.message.request);
    if (!eager)
        messages.counted.staged += plan::staged_bytes(receiving.plan(), receiving.accepted, true);
}

}  // namespace

Task<Status> receive_rendezvous(Executor& executor, Messages& messages, Incoming& message) {
    if (executor.hands_over()) co_await Yield(executor);
    Request& request = *message.request;
    Receiving receiving{.messages = messages,
                        .message = message,
                        .side = Side{request.buffer, request.location},
                        .accepted = request.outcome.bytes};
    Status status = co_await run(executor, receiving);
    // Past the room of a truncated receive, or behind a failure; what comes later goes back by
    // itself.
    while (receiving.shared && !message.arrived.empty() && receiving.sender().lost.ok()) {
        const wire::Chunk unused = message.arrived.pop();
        Status returned = unused.units > 0 ? return_slot(receiving, unused) : success();
        if (status.ok()) status = std::move(returned);
    }
    if (!status.ok() && !message.finished.done())
        tell_failure(messages, message.peer, message.rts.send_id, status, wire::For::sender);
    if (status.ok()) count(receiving);
    messages.incoming.remove(message.peer, message.rts.send_id);
    messages.finish_request(request, std::move(status));
    co_return success();
}

}  // namespace gantry::p2p
