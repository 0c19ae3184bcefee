// SPDX-License-Identifier: BSD-3-Clause
//
// Loans over TCP: a message that announces host memory goes as the head of UCX's own rendezvous on
// the bulk connection (bulk.hpp), so whoever wants the bytes only has to say where. Nothing else
// travels: no verdict, no key, no answer, no `finish`, and the receiver knows the end from the
// connection that carries the bytes, ahead of whatever queues elsewhere.
//
//   lender                                   borrower
//     | == loan: message, rendezvous =======> |  delivers the message, keeps the rendezvous
//     | <========================== where === |  fetch
//     | == bytes, end ======================> |  `done` there; here when the last byte was handed
//                                             |  to the kernel
//
// A borrower that wants it another way says so by a message of its own and drops the rendezvous
// when that other way has ended: until then the lender hears nothing from UCX.
#include "base/log.hpp"
#include "transport/ucx/peer.hpp"

#include <cstring>
#include <new>

namespace gantry::transport::ucx {

bool UcxTransport::lends(int rank) {
    Peer& peer = peer_of(rank);
    return peer.lost.ok() && !peer.left && !peer.broken && !peer.endpoints.empty() &&
           goes_by_messages(kLoanRail) && bulk_to(peer, kLoanRail, config_.tcp_straight) != nullptr;
}

Status UcxTransport::lend(int rank, MessageKind kind, ConstSpan header, std::uint64_t number,
                          const void* source, Bytes bytes, Completion& done) {
    GANTRY_ASSERT(header.size() <= kMaxHeader);
    Peer& peer = peer_of(rank);
    if (!peer.lost.ok()) return peer.lost;
    ucp_ep_h endpoint = lends(rank) ? bulk_to(peer, kLoanRail, config_.tcp_straight) : nullptr;
    if (endpoint == nullptr)
        return failure(MPI_ERR_INTERN, "no connection to rank {} lends memory", rank);
    auto* loan = new (std::nothrow) Loan{this, &done, rank, number, false, {}, {}};
    if (loan == nullptr)
        return failure(MPI_ERR_NO_MEM, "no memory for a message of {} bytes", bytes);
    loan->head = {kFrameMagic, static_cast<std::uint32_t>(rank_), number, kind,
                  static_cast<std::uint32_t>(header.size())};
    std::memcpy(loan->message.data(), header.data(), header.size());
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                       UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    how.cb.send = &UcxTransport::on_lent;
    how.user_data = loan;
    how.flags = UCP_AM_SEND_FLAG_RNDV;
    how.memory_type = UCS_MEMORY_TYPE_HOST;
    peer.lent.emplace(number, loan);
    ++in_flight_;
    ++loans_;
    static_assert(offsetof(Loan, message) == offsetof(Loan, head) + sizeof(LoanHead));
    void* request = (*library_)->ucp_am_send_nbx(
        endpoint, kLoanId, &loan->head, sizeof(LoanHead) + header.size(), source, bytes, &how);
    if (!UCS_PTR_IS_PTR(request)) finish_loan(*loan, UCS_PTR_STATUS(request));
    return success();
}

void UcxTransport::take_back(int rank, std::uint64_t number) {
    Peer& peer = peer_of(rank);
    const auto found = peer.lent.find(number);
    if (found == peer.lent.end()) return;
    found->second->done = nullptr;
    peer.lent.erase(found);
}

void UcxTransport::on_lent(void* request, ucs_status_t status, void* arg) {
    auto& loan = *static_cast<Loan*>(arg);
    (*loan.owner->library_)->ucp_request_free(request);
    loan.owner->finish_loan(loan, status);
}

void UcxTransport::finish_loan(Loan& loan, ucs_status_t status) {
    if (loan.forgotten) return;  // it is ours to free, and was told of
    const std::unique_ptr<Loan> ended(&loan);
    --in_flight_;
    ++events_;
    if (loan.done == nullptr) return;  // taken back
    Peer& peer = peer_of(loan.peer);
    peer.lent.erase(loan.number);
    if (receiver_ != nullptr) loan.done->complete(end_of_loan(peer, status));
}

Status UcxTransport::end_of_loan(Peer& peer, ucs_status_t status) {
    if (status == UCS_OK) return success();
    on_error(&peer, nullptr, status);
    return loss_of(peer, status);
}

// Both ways: what UCX has not given back.
void UcxTransport::abandon_loans(Peer& peer) {
    const Status why = loss_of(peer, UCS_ERR_CONNECTION_RESET);
    for (Taking* taking : peer.taking)
        if (Completion* done = std::exchange(taking->done, nullptr)) done->complete(why);
    for (const auto& [number, loan] : std::exchange(peer.lent, {})) {
        log::debug("ucx: a loan of rank {} was forgotten", rank_);
        --in_flight_;
        loan->forgotten = true;
        forgotten_loans_.emplace_back(loan);
        std::exchange(loan->done, nullptr)->complete(why);
    }
}

// A loan ends here with its last byte in the kernel's hands or in UCX's; closing by force would
// drop the latter.
void UcxTransport::flush_loans(Peer& peer) {
    if (loans_ == 0) return;
    for (const auto& bulk : peer.bulk) {
        if (bulk == nullptr || bulk->state != Bulk::State::open) continue;
        ucp_request_param_t how{};
        void* request = (*library_)->ucp_ep_flush_nbx(bulk->endpoint, &how);
        if (UCS_PTR_IS_PTR(request)) closing_.push_back(request);
    }
}

// --- the borrower
// ---------------------------------------------------------------------------------

ucs_status_t UcxTransport::on_loan(void* listening, const void* header, std::size_t header_length,
                                   void* data, std::size_t length,
                                   const ucp_am_recv_param_t* param) {
    const auto& [owner, worker] = *static_cast<Listening*>(listening);
    UcxTransport& self = *owner;
    LoanHead head{};
    if (header_length >= sizeof head) std::memcpy(&head, header, sizeof head);
    const bool known = head.magic == kFrameMagic && head.from < self.peers_.size() &&
                       head.header_bytes == header_length - sizeof head &&
                       (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
    if (!known) {
        log::error("ucx: a loan of {} bytes came from nobody of this job", length);
        return UCS_OK;
    }
    Peer& peer = self.peer_of(static_cast<int>(head.from));
    if (self.receiver_ == nullptr || !peer.lost.ok()) return UCS_OK;
    ++self.events_;
    Borrowed& borrowed = peer.borrowed[head.number];
    borrowed = {data, length, worker};
    const Handling outer = std::exchange(self.handling_, {&borrowed, UCS_INPROGRESS});
    self.receiver_->on_message(
        peer.rank, static_cast<MessageKind>(head.kind),
        {static_cast<const std::byte*>(header) + sizeof head, head.header_bytes}, {});
    return std::exchange(self.handling_, outer).kept;
}

void UcxTransport::fetch(int rank, std::uint64_t number, void* sink, Completion& done) {
    Peer& peer = peer_of(rank);
    const auto found = peer.borrowed.find(number);
    if (found == peer.borrowed.end())
        return done.complete(
            peer.lost.ok()
                ? failure(MPI_ERR_INTERN, "rank {} lent nothing by number {}", rank, number)
                : peer.lost);
    const Borrowed borrowed = found->second;
    auto* taking = new (std::nothrow) Taking{this, rank, 0, &done};
    if (taking == nullptr) {
        decline(rank, number);
        return done.complete(
            failure(MPI_ERR_NO_MEM, "no memory to receive {} bytes", borrowed.bytes));
    }
    const bool handled = handling_.borrowed == &found->second;
    peer.borrowed.erase(found);
    if (!receive_rendezvous(peer, *taking, borrowed.worker, borrowed.rendezvous, sink,
                            borrowed.bytes) &&
        handled)
        handling_.kept = UCS_OK;
}

void UcxTransport::decline(int rank, std::uint64_t number) {
    Peer& peer = peer_of(rank);
    const auto found = peer.borrowed.find(number);
    if (found == peer.borrowed.end()) return;
    const Borrowed borrowed = found->second;
    const bool handled = handling_.borrowed == &found->second;
    peer.borrowed.erase(found);
    if (handled)
        handling_.kept = UCS_OK;  // UCX drops what its handler does not keep
    else
        (*library_)->ucp_am_data_release(borrowed.worker, borrowed.rendezvous);
}

}  // namespace gantry::transport::ucx
