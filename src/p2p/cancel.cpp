// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Cancel of a send (MPI 5.0 section 3.8.4). Only the receiver knows whether a receive has the
// message, so its answer decides, and the request ends when it is there:
//
//     sender                                  receiver
//       | --- cancel [send id] ---------------> |  no receive has it: it drops the message, and what
//       |                                       |  the message holds of its sender's goes back
//       | <-- cancelled [send id, dropped] ---- |
//
// A dropped message ends like one whose receiver gave up, but well. One that a receive has goes on
// as if nobody had asked. What needs no receiver to end is not asked about: eager messages, and
// those told by flags beside their slots, which are copied to the end at once.
#include "base/log.hpp"
#include "p2p/messages.hpp"
#include "p2p/offer.hpp"

namespace gantry::p2p {

void Messages::cancel(const Request& send_request) {
    Outgoing* message = outgoing.find(send_request);
    if (message == nullptr || message->withdrawn != nullptr) return;
    // To oneself the answer is known at once: the message arrives first.
    if (message->peer == context.world_rank) {
        endpoint(message->peer).transport->progress();
        message = outgoing.find(send_request);
        if (message == nullptr) return;
    }
    message->withdrawn = std::make_unique<Completion>(executor);
    if (message->peer == context.world_rank && drop_unexpected(message->peer, message->id))
        return on_cancelled(message->peer, {message->id, 1}, {});
    Status asked = send(message->peer, wire::kCancel, wire::Cancel{message->id});
    if (asked.ok()) return;
    message->withdrawn.reset();
    log::info("p2p: a send to rank {} cannot be cancelled: {}", message->peer, asked.text());
}

// False: a receive has that message, or it has not come.
bool Messages::drop_unexpected(int from, std::uint64_t send_id) {
    const std::unique_ptr<Incoming> message = matcher.take_sent(from, send_id);
    if (message == nullptr) return false;
    if (message->rendezvous) incoming.remove(from, send_id);
    message->synchronous_id = 0;  // the answer is what the sender waits for
    give_back(*message);
    return true;
}

void Messages::on_cancel(int from, const wire::Cancel& cancel, transport::ConstSpan) {
    const wire::Cancelled answer{cancel.send_id, drop_unexpected(from, cancel.send_id) ? 1u : 0u};
    Status told = send(from, wire::kCancelled, answer);
    if (!told.ok() && lost(from).ok())
        log::error("rank {} was not told about a cancelled send: {}", from, told.text());
}

void Messages::on_cancelled(int, const wire::Cancelled& answer, transport::ConstSpan) {
    Outgoing* const message = outgoing.find(answer.send_id);
    // It may have ended meanwhile: then a receive had it.
    if (message == nullptr || message->withdrawn == nullptr || message->withdrawn->done()) return;
    if (answer.dropped == 0) {
        message->withdrawn->complete(failure(MPI_ERR_PENDING, "a receive has the message"));
        return;
    }
    message->withdrawn->complete(success());
    if (message->running) {
        end_early(*message, failure(MPI_ERR_OTHER, "the send was cancelled"));
        return;
    }
    Request& request = *message->request;
    request.outcome.cancelled = true;
    release_source(*this, *message);
    remove(*message);
    finish_request(request, success());
}

Task<Status> settle_cancel(Executor&, Outgoing& message, Status otherwise) {
    Completion& answered = *message.withdrawn;
    const Status dropped = co_await answered;
    if (!dropped.ok()) co_return otherwise;
    message.request->outcome.cancelled = true;
    co_return success();
}

}  // namespace gantry::p2p
