// SPDX-License-Identifier: BSD-3-Clause
//
// Atomic operations on a peer's words, all by the first rail, so that operations on one word go one
// way and one kind of executor sees them all.
//
// Where a card is, and one rail: UCX's. Over TCP alone, as puts do, by a message that the peer answers from its
// progress: no slower than UCX's emulation, which in 1.13 reads freed memory when the peer dies
// while an operation is under way. With several rails, too: whether an operation of a card that failed
// was executed is unknown, and a message is executed once, whichever rails fail.
#include "base/log.hpp"
#include "transport/ucx/peer.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

namespace gantry::transport::ucx {
namespace {

constexpr int kRail = 0;

ucp_atomic_op_t operation_of(AtomicOperation operation) {
    switch (operation) {
        case AtomicOperation::fetch_add: return UCP_ATOMIC_OP_ADD;
        case AtomicOperation::swap: return UCP_ATOMIC_OP_SWAP;
        case AtomicOperation::compare_swap: return UCP_ATOMIC_OP_CSWAP;
    }
    return UCP_ATOMIC_OP_LAST;
}

// The program's own threads may update the word, too.
template <class Word>
std::uint64_t apply(AtomicOperation operation, void* address, std::uint64_t operand,
                    std::uint64_t compare) {
    std::atomic_ref<Word> word(*static_cast<Word*>(address));
    switch (operation) {
        case AtomicOperation::fetch_add: return word.fetch_add(static_cast<Word>(operand));
        case AtomicOperation::swap: return word.exchange(static_cast<Word>(operand));
        case AtomicOperation::compare_swap: break;
    }
    auto expected = static_cast<Word>(compare);
    word.compare_exchange_strong(expected, static_cast<Word>(operand));
    return expected;
}

}  // namespace

void UcxTransport::atomic(int rank, AtomicOperation operation, const AtomicOperands& operands,
                          const RemoteKey& key, Bytes offset, std::uint64_t* result,
                          Completion& done) {
    GANTRY_ASSERT(operands.width == 4 || operands.width == 8);
    Peer& peer = peer_of(rank);
    if (!peer.lost.ok()) return done.complete(peer.lost);
    if (!peer.connected && !peer.broken && !peer.left)
        if (Status failed = connect(peer)) return done.complete(failed);
    const KeyView view = read_key(key, kRail);
    if (view.packed.empty())
        return done.complete(
            failure(MPI_ERR_INTERN, "rank {} sent no key of its memory for an atomic", rank));
    if (!peer.connected)
        return done.complete(
            failure(MPI_ERR_PROC_ABORTED, "an atomic on rank {}, which cannot be reached", rank));
    RemoteKeys::Key* unpacked = nullptr;
    if (!several() && !goes_by_messages(kRail)) {
        Result<RemoteKeys::Key*> read =
            peer.keys.unpack(*library_, peer.rails.front().endpoint, kRail, view.packed, keys_);
        if (!read.ok())
            return done.complete(read.status().with(fmt::format("an atomic on rank {}", rank)));
        unpacked = *read;
    }
    auto* putting = new (std::nothrow) Putting{this, &done, unpacked, 1, UCS_OK, rank, -1,
                                               static_cast<Bytes>(operands.width),
                                               Putting::Kind::atomic};
    if (putting == nullptr)
        return done.complete(failure(MPI_ERR_NO_MEM, "no memory for an atomic operation"));
    ++in_flight_;
    putting->old = result;
    *result = 0;
    ucs_status_t posted = UCS_OK;
    if (unpacked != nullptr) {
        ++unpacked->users;
        atomic_one_sided(peer, operation, operands, *putting, view.address + offset);
    } else if (Status failed =
                   atomic_by_message(peer, operation, operands, *putting, view.region, offset)) {
        posted = UCS_ERR_NO_MEMORY;
    }
    finish_step(*putting, posted);  // the one it began with
}

void UcxTransport::atomic_one_sided(Peer& peer, AtomicOperation operation,
                                    const AtomicOperands& operands, Putting& putting,
                                    std::uint64_t address) {
    const bool compares = operation == AtomicOperation::compare_swap;
    // Little-endian: the low bytes come first. UCX compares with the operand and stores what stands
    // where the result will.
    putting.operand = compares ? operands.compare : operands.operand;
    if (compares) std::memcpy(putting.old, &operands.operand, putting.bytes);
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                       UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER |
                       UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    how.cb.send = &UcxTransport::on_put;
    how.user_data = &putting;
    how.datatype = ucp_dt_make_contig(putting.bytes);
    how.reply_buffer = putting.old;
    how.memory_type = UCS_MEMORY_TYPE_HOST;
    ++putting.steps;
    void* request =
        (*library_)->ucp_atomic_op_nbx(peer.rails.front().endpoint, operation_of(operation),
                                       &putting.operand, 1, address, putting.key->key, &how);
    if (!UCS_PTR_IS_PTR(request)) finish_step(putting, UCS_PTR_STATUS(request));
}

Status UcxTransport::atomic_by_message(Peer& peer, AtomicOperation operation,
                                       const AtomicOperands& operands, Putting& putting,
                                       std::uint64_t region, Bytes offset) {
    const AtomicHead head{next_ticket_++,
                          region,
                          offset,
                          operands.operand,
                          operands.compare,
                          static_cast<std::uint32_t>(operation),
                          static_cast<std::uint32_t>(operands.width)};
    GANTRY_TRY(send_record(peer, kAtomic, std::as_bytes(std::span(&head, 1)), {}));
    ++putting.steps;  // the answer
    peer.unanswered.emplace(head.ticket, &putting);
    return success();
}

void UcxTransport::on_atomic(Peer& peer, ConstSpan header) {
    AtomicHead head{};
    if (header.size() == sizeof head) std::memcpy(&head, header.data(), sizeof head);
    std::byte* word = nullptr;
    const bool known = head.operation <= static_cast<std::uint32_t>(AtomicOperation::compare_swap);
    if (known && (head.width == 4 || head.width == 8))
        word = memory_->at(head.region, head.offset, head.width);
    if (reinterpret_cast<std::uintptr_t>(word) % std::max(head.width, 1u) != 0) word = nullptr;
    PutAnswer answer{head.ticket, word == nullptr ? 1u : 0u, 0};
    const auto operation = static_cast<AtomicOperation>(head.operation);
    if (word != nullptr)
        answer.old = head.width == 4
                         ? apply<std::uint32_t>(operation, word, head.operand, head.compare)
                         : apply<std::uint64_t>(operation, word, head.operand, head.compare);
    Status said = append(peer, kPutAnswer, std::as_bytes(std::span(&answer, 1)), {});
    if (!said.ok()) log::error("{}", said.text());
    visit_in_progress(peer);
}

}  // namespace gantry::transport::ucx
