// SPDX-License-Identifier: BSD-3-Clause
//
// Exposed memory over TCP: a message names host memory, and whoever wants the bytes only has to say so.
// They come by the bulk connection (bulk.hpp), from where they lie to where they belong. No
// verdict, no key, no answer and no `finish`; the receiver knows the end from the stream that
// carries the bytes, ahead of whatever queues elsewhere.
//
//   lender                                   borrower
//     | -- the message that exposes it -----> |
//     | <- 250 fetch | number | ------------- |  get_exposed()
//     | == | head | bytes | ================> |  `done` there; here when the kernel has it all
//
// A borrower that wants it another way says so by a message of its own, and the lender takes it
// back.
#include "transport/ucx/peer.hpp"

#include <algorithm>

namespace gantry::transport::ucx {

bool UcxTransport::exposes(int rank) {
    Peer& peer = peer_of(rank);
    return !several() && peer.lost.ok() && !peer.left && !peer.broken && peer.connected &&
           goes_by_messages(kExposureRail) && bulk_to(peer, kExposureRail) != nullptr;
}

Status UcxTransport::expose(int rank, MessageKind kind, ConstSpan header, std::uint64_t number,
                            const void* source, Bytes bytes, Completion& done) {
    GANTRY_TRY(send(rank, kind, header, {}));
    peer_of(rank).exposures.emplace(number, Exposure{source, bytes, &done});
    ++exposures_;
    return success();
}

void UcxTransport::take_back(int rank, std::uint64_t number) {
    peer_of(rank).exposures.erase(number);
}

void UcxTransport::on_fetch(Peer& peer, std::uint64_t number) {
    const auto found = peer.exposures.find(number);
    Bulk* bulk = bulk_to(peer, kExposureRail);
    if (found == peer.exposures.end() || bulk == nullptr) return;  // both mean that it is lost
    ++in_flight_;
    const Exposure& exposure = found->second;
    send_zero_copy(
        *bulk,
        {kFrameMagic, static_cast<std::uint32_t>(Carried::exposure), number, 0, 0, exposure.bytes},
        exposure.source, [this, &peer, number](const Status& left) {
            --in_flight_;
            end_exposure(peer, number, left);
        });
}

void UcxTransport::end_exposure(Peer& peer, std::uint64_t number, const Status& how) {
    const auto exposure = peer.exposures.extract(number);
    if (exposure.empty() || receiver_ == nullptr) return;
    exposure.mapped().done->complete(how.ok() ? success()
                                              : loss_of(peer, UCS_ERR_CONNECTION_RESET));
}

// By the connection that the peer opened for them; false: there is none.
bool UcxTransport::expect_exposure(const Peer& peer) {
    const auto found = std::ranges::find_if(accepted_, [&](const auto& accepted) {
        return accepted->from == peer.rank && accepted->hello.rail == kExposureRail;
    });
    if (found == accepted_.end()) return false;
    ++(*found)->expected;
    ++expected_;
    return true;
}

void UcxTransport::get_exposed(int rank, std::uint64_t number, void* sink, Bytes bytes,
                               Completion& done) {
    Peer& peer = peer_of(rank);
    if (!peer.lost.ok()) return done.complete(peer.lost);
    if (!expect_exposure(peer))
        return done.complete(failure(MPI_ERR_INTERN, "rank {} has exposed nothing", rank));
    peer.fetches[number] = {static_cast<std::byte*>(sink), bytes, &done};
    Status told = send_record(peer, kFetch, std::as_bytes(std::span(&number, 1)), {});
    if (!told.ok()) note_broken(peer, UCS_ERR_NO_MEMORY);
}

void UcxTransport::finish_fetch(Peer& peer, std::uint64_t number, bool dropped) {
    const auto fetch = peer.fetches.extract(number);
    if (fetch.empty() || receiver_ == nullptr) return;
    fetch.mapped().done->complete(
        dropped ? failure(MPI_ERR_INTERN, "rank {} exposed another message", peer.rank)
                : success());
}

// The peer is lost or left: what it exposed will not come, and what we exposed is ours again.
void UcxTransport::end_fetches(Peer& peer) {
    const Status why = loss_of(peer, UCS_ERR_CONNECTION_RESET);
    for (const auto& [number, fetch] : std::exchange(peer.fetches, {}))
        if (receiver_ != nullptr) fetch.done->complete(why);
    for (const auto& [number, exposure] : std::exchange(peer.exposures, {}))
        if (receiver_ != nullptr) exposure.done->complete(why);
}

}  // namespace gantry::transport::ucx
