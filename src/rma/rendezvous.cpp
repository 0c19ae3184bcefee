// SPDX-License-Identifier: BSD-3-Clause
//
// Large operations with an end in device memory that neither a mapping nor the network reaches. The
// message that names {window, offset} carries the RTS of a rendezvous (p2p/announced.cpp): from there on
// bytes travel as those of a large message, mostly through the slots of both sides in a pipeline.
//
//   put   origin -- 81 rendezvous put | RTS ----> target        get   origin -- 83 rendezvous get ---> target
//         origin ==== rendezvous ==============> target              origin <- 84 | RTS ------------ target
//         origin <- 82 ended ------------------- target              origin <==== rendezvous ======= target
//
// A put has ended at its origin when its bytes have left, and at its target when 82 says so. Such
// operations have no order among the others, so ends of epochs wait for 82.
#include "base/log.hpp"
#include "transfer/buffer.hpp"
#include "p2p/wire.hpp"
#include "rma/windows.hpp"

namespace gantry::rma {
namespace {

// The whole of a region, as messages see buffers.
Buffer buffer_of(const Region& region) {
    if (region.side.buffer.layout != nullptr) return region.side.buffer;
    return transfer::bytes_buffer(region.side.at(region.first), region.bytes);
}

}  // namespace

Task<Status> Rendezvous::carry(Executor& executor, Operation* operation) {
    if (operation->access.verb == Verb::put) {
        Status left = co_await announce_put(executor, *operation);
        window.origin.ended(*operation, std::move(left));
        co_return success();
    }
    operation->being_sent = true;
    Status asked = co_await announce_get(executor, *operation);
    operation->being_sent = false;
    if (!asked.ok()) operation->status = std::move(asked);
    window.outbound.end_if_over(*operation);
    co_return success();
}

Task<Status> Rendezvous::announce_get(Executor& executor, Operation& operation) {
    const Access& access = operation.access;
    Target& of = target(access.target);
    operation.missing = access.bytes;
    Status room = co_await window.outbound.until_room(executor, of);
    GANTRY_CO_TRY(room);
    Result<wire::Span> span = window.outbound.span_for(access, operation.address);
    if (!span.ok()) co_return std::move(span).status();
    windows.await_answer(operation);
    Status asked = window.send_behind_batch(access.target, wire::kRendezvousGet,
                                            wire::RendezvousGet{{}, *span, operation.id});
    GANTRY_CO_TRY(asked);
    ++of.sent;
    co_return success();
}

Task<Status> Rendezvous::announce_put(Executor& executor, Operation& operation) {
    const Access& access = operation.access;
    Target& of = target(access.target);
    Status room = co_await window.outbound.until_room(executor, of);
    GANTRY_CO_TRY(room);
    Result<wire::Span> span = window.outbound.span_for(access, operation.address);
    if (!span.ok()) co_return std::move(span).status();
    const wire::RendezvousPut put{{}, *span};
    const int of_rank = access.target;
    bool told = false;
    const p2p::SendAnnouncement send = [this, of_rank, &put, &told](const p2p::wire::Rts& rts) {
        GANTRY_TRY(
            window.send_behind_batch(of_rank, wire::kRendezvousPut, put, p2p::wire::bytes_of(rts)));
        told = true;
        return success();
    };
    Result<p2p::Request*> leaving =
        windows.messenger.announce(of.peer, access.origin.buffer, access.origin.location, send);
    if (told) {
        ++of.sent;
        ++of.rendezvous;
    }
    if (!leaving.ok()) co_return std::move(leaving).status();
    Status left = co_await (*leaving)->finished(executor);
    windows.messenger.release(*leaving);
    co_return left;
}

void Rendezvous::on_put_ended(int from, const wire::PutEnded& put) {
    Target& of = target(from);
    --of.rendezvous;
    if (put.error_class != MPI_SUCCESS && of.failure.ok())
        of.failure =
            failure(put.error_class,
                    "rank {} could not execute a one-sided operation (its own log says why)", from);
}

Task<Status> Rendezvous::receive_rendezvous(Executor& executor, p2p::Matched message,
                                            p2p::Buffer into) {
    Result<p2p::Request*> coming = windows.messenger.ireceive_matched(window.group, message, into);
    if (!coming.ok()) {
        Status why = std::move(coming).status();
        windows.messenger.refuse(message, why);
        co_return why;
    }
    Status came = co_await (*coming)->finished(executor);
    windows.messenger.release(*coming);
    co_return came;
}

// At the target.
void Rendezvous::take_put(int from, transport::ConstSpan header, transport::ConstSpan payload) {
    const auto put = wire::read<wire::RendezvousPut>(header);
    const p2p::Matched message =
        windows.messenger.take_announced(target(from).peer, wire::read<p2p::wire::Rts>(payload));
    Result<Region> region = window.inbound.region_of(from, put.span);
    if (region.ok()) {
        window.tasks.spawn(receive_put(windows.executor(), from, message, *region));
        return;
    }
    log::warn("rma: {}", region.status().text());
    windows.messenger.refuse(message, region.status());
    window.inbound.served(from, success(), 0);  // the refusal and 82 tell of it
    Status told = window.send_behind_batch(from, wire::kPutEnded,
                                           wire::PutEnded{{}, region.status().error_class()});
    if (!told.ok()) log::info("rma: rank {} is not told: {}", from, told.text());
}

Task<Status> Rendezvous::receive_put(Executor& executor, int from, p2p::Matched message,
                                     Region region) {
    Status came = co_await receive_rendezvous(executor, message, buffer_of(region));
    if (!came.ok()) log::warn("rma: a put of rank {}: {}", from, came.text());
    window.inbound.served(from, success(), 0);
    Status told =
        window.send_behind_batch(from, wire::kPutEnded, wire::PutEnded{{}, came.error_class()});
    if (!told.ok()) log::info("rma: rank {} is not told: {}", from, told.text());
    co_return success();
}

void Rendezvous::serve_rendezvous_get(int from, transport::ConstSpan header) {
    const auto get = wire::read<wire::RendezvousGet>(header);
    Result<Region> region = window.inbound.region_of(from, get.span);
    if (region.ok()) {
        window.tasks.spawn(send_answer(windows.executor(), from, get, *region));
        return;
    }
    log::warn("rma: {}", region.status().text());
    window.inbound.answer(from, get.id, get.span, region.status(), {});
    window.inbound.served(from, success(), 0);
}

// The origin has all bytes before it says anything more, so the get counts when it is announced.
Task<Status> Rendezvous::send_answer(Executor& executor, int from, wire::RendezvousGet get,
                                     Region region) {
    const p2p::SendAnnouncement send = [this, from, get](const p2p::wire::Rts& rts) {
        return window.send_behind_batch(from, wire::kAnswerFollows, wire::AnswerFollows{{}, get.id},
                                        p2p::wire::bytes_of(rts));
    };
    Result<p2p::Request*> leaving = windows.messenger.announce(target(from).peer, buffer_of(region),
                                                               region.side.location, send);
    if (!leaving.ok()) window.inbound.answer(from, get.id, get.span, leaving.status(), {});
    window.inbound.served(from, success(), 0);
    if (!leaving.ok()) co_return success();
    Status left = co_await (*leaving)->finished(executor);
    if (!left.ok()) log::warn("rma: a get of rank {}: {}", from, left.text());
    windows.messenger.release(*leaving);
    co_return success();
}

// At the origin of the get.
void Rendezvous::take_answer(int from, transport::ConstSpan header, transport::ConstSpan payload) {
    const auto follows = wire::read<wire::AnswerFollows>(header);
    const p2p::Matched message =
        windows.messenger.take_announced(target(from).peer, wire::read<p2p::wire::Rts>(payload));
    Operation* const operation = windows.waiting_for(follows.id);
    if (operation == nullptr)
        return windows.messenger.refuse(message, failure(MPI_ERR_OTHER, "the get has failed"));
    ++operation->stores;
    window.tasks.spawn(receive_answer(windows.executor(), operation, message));
}

Task<Status> Rendezvous::receive_answer(Executor& executor, Operation* operation,
                                        p2p::Matched message) {
    Status came = co_await receive_rendezvous(executor, message, operation->access.origin.buffer);
    --operation->stores;
    operation->missing = 0;
    if (!came.ok() && operation->status.ok()) operation->status = std::move(came);
    window.outbound.end_if_over(*operation);
    co_return success();
}

}  // namespace gantry::rma
