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
           goes_by_messages(kLoanRail) && bulk_to(peer, kLoanRail) != nullptr;
}

Status UcxTransport::expose(int rank, MessageKind kind, ConstSpan header, std::uint64_t number,
                            const void* source, Bytes bytes, Completion& done) {
    GANTRY_TRY(send(rank, kind, header, {}));
    peer_of(rank).loans.emplace(number, Loan{source, bytes, &done});
    ++loans_;
    return success();
}

void UcxTransport::take_back(int rank, std::uint64_t number) {
    peer_of(rank).loans.erase(number);
}

void UcxTransport::on_fetch(Peer& peer, std::uint64_t number) {
    const auto found = peer.loans.find(number);
    Bulk* bulk = bulk_to(peer, kLoanRail);
    if (found == peer.loans.end() || bulk == nullptr) return;  // both mean that it is lost
    ++in_flight_;
    const Loan& loan = found->second;
    send_straight(
        *bulk, {kFrameMagic, static_cast<std::uint32_t>(Carried::loan), number, 0, 0, loan.bytes},
        loan.source, [this, &peer, number](const Status& left) {
            --in_flight_;
            end_exposure(peer, number, left);
        });
}

void UcxTransport::end_exposure(Peer& peer, std::uint64_t number, const Status& how) {
    const auto loan = peer.loans.extract(number);
    if (loan.empty() || receiver_ == nullptr) return;
    loan.mapped().done->complete(how.ok() ? success() : loss_of(peer, UCS_ERR_CONNECTION_RESET));
}

// By the connection that the peer opened for them; false: there is none.
bool UcxTransport::expect_loan(const Peer& peer) {
    const auto found = std::ranges::find_if(accepted_, [&](const auto& accepted) {
        return accepted->from == peer.rank && accepted->hello.rail == kLoanRail;
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
    if (!expect_loan(peer))
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
    for (const auto& [number, loan] : std::exchange(peer.loans, {}))
        if (receiver_ != nullptr) loan.done->complete(why);
}

}  // namespace gantry::transport::ucx
