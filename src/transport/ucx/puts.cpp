// SPDX-License-Identifier: BSD-3-Clause
//
// Remote memory of the UCX transport. `done` promises that the bytes are at the peer.
//
// Where a card writes without the peer's processor: a put of UCX, which ends when its source may be
// reused, and a flush behind it. Over TCP alone that costs two round trips and half the rate
// (facts/transports.md 2.6): there a put goes as messages, straight from the source, in pieces that
// the peer finds in one receive buffer, copies to their place, and answers once for all.
#include "base/log.hpp"
#include "transport/ucx/peer.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace gantry::transport::ucx {
namespace {

constexpr std::size_t kKeysKept = 64;
// One message of UCX over TCP holds 64 KiB with its headers.
constexpr Bytes kPieceBytes = 64 * kKiB;

}  // namespace

Result<Region> UcxTransport::register_memory(void* address, Bytes bytes) {
    return memory_->add(address, bytes);
}
void UcxTransport::release_memory(const Region& region) {
    if (memory_) memory_->remove(region);
}
RemoteKey UcxTransport::key(const Region& region) const {
    return memory_->key(region);
}

Result<UcxTransport::Unpacked*> UcxTransport::unpack(Peer& peer, int rail, ConstSpan packed) {
    for (const auto& known : peer.keys)
        if (known->rail == rail && std::ranges::equal(known->packed, packed)) return known.get();
    if (peer.keys.size() >= kKeysKept)
        std::erase_if(peer.keys, [this](const auto& key) {
            if (key->users > 0) return false;
            (*library_)->ucp_rkey_destroy(key->key);
            return true;
        });
    auto made = std::make_unique<Unpacked>();
    made->rail = rail;
    made->packed.assign(packed.begin(), packed.end());
    const ucs_status_t status = (*library_)->ucp_ep_rkey_unpack(
        peer.endpoints[static_cast<std::size_t>(rail)], packed.data(), &made->key);
    if (status != UCS_OK)
        return library_->failed(fmt::format("reading a memory key of rank {}", peer.rank), status);
    peer.keys.push_back(std::move(made));
    return peer.keys.back().get();
}

// Keys belong to their endpoint. UCX counts what it still needs of them itself.
void UcxTransport::drop_keys(Peer& peer) {
    for (const auto& known : peer.keys)
        if (known->key != nullptr)
            (*library_)->ucp_rkey_destroy(std::exchange(known->key, nullptr));
    std::erase_if(peer.keys, [](const auto& known) { return known->users == 0; });
}

void UcxTransport::put(int rank, int rail, const void* source, Bytes bytes, const RemoteKey& key,
                       Bytes offset, Completion& done) {
    Peer& peer = peer_of(rank);
    const KeyView view = read_key(key, rail);
    if (!peer.lost.ok()) return done.complete(peer.lost);
    if (view.packed.empty())
        return done.complete(
            failure(MPI_ERR_INTERN, "rank {} sent no key for rail {} of its memory", rank, rail));
    if (peer.endpoints.empty() || peer.broken)
        return done.complete(
            failure(MPI_ERR_PROC_ABORTED, "a put to rank {}, which cannot be reached", rank));
    Unpacked* unpacked = nullptr;
    const bool by_messages = rails_[static_cast<std::size_t>(rail)].only_tcp();
    if (!by_messages) {
        Result<Unpacked*> read = unpack(peer, rail, view.packed);
        if (!read.ok()) return done.complete(read.status());
        unpacked = *read;
    }
    auto* putting = new (std::nothrow) Putting{this, &done, unpacked, 1, UCS_OK, rank, bytes};
    if (putting == nullptr)
        return done.complete(failure(MPI_ERR_NO_MEM, "no memory for a put of {} bytes", bytes));
    ++in_flight_;
    if (by_messages)
        put_by_messages(peer, rail, static_cast<const std::byte*>(source), *putting, view.region,
                        offset);
    else
        put_one_sided(peer, rail, source, *putting, view.address + offset);
    finish_step(*putting, UCS_OK);  // the one it began with: all is posted, so it may end now
}

void UcxTransport::put_one_sided(Peer& peer, int rail, const void* source, Putting& putting,
                                 std::uint64_t address) {
    ++putting.key->users;
    putting.steps += 2;
    ucp_ep_h endpoint = peer.endpoints[static_cast<std::size_t>(rail)];
    ucp_request_param_t how{};
    how.op_attr_mask =
        UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    how.cb.send = &UcxTransport::on_put;
    how.user_data = &putting;
    how.memory_type = UCS_MEMORY_TYPE_HOST;
    void* request =
        (*library_)->ucp_put_nbx(endpoint, source, putting.bytes, address, putting.key->key, &how);
    if (!UCS_PTR_IS_PTR(request)) finish_step(putting, UCS_PTR_STATUS(request));
    request = (*library_)->ucp_ep_flush_nbx(endpoint, &how);
    if (!UCS_PTR_IS_PTR(request)) finish_step(putting, UCS_PTR_STATUS(request));
}

void UcxTransport::put_by_messages(Peer& peer, int rail, const std::byte* source, Putting& putting,
                                   std::uint64_t region, Bytes offset) {
    const Bytes pieces = std::max<Bytes>(divide_up(putting.bytes, kPieceBytes), 1);
    putting.heads.reset(new (std::nothrow) PieceHead[pieces]);
    if (putting.heads == nullptr) {
        putting.status = UCS_ERR_NO_MEMORY;
        return;
    }
    const std::uint64_t ticket = next_ticket_++;
    ++putting.steps;  // the answer
    peer.unanswered.emplace(ticket, &putting);
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                       UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    how.cb.send = &UcxTransport::on_put;
    how.user_data = &putting;
    how.flags = UCP_AM_SEND_FLAG_EAGER;
    how.memory_type = UCS_MEMORY_TYPE_HOST;
    for (Bytes piece = 0; piece < pieces; ++piece) {
        const Bytes at = piece * kPieceBytes;
        const Bytes bytes = std::min(kPieceBytes, putting.bytes - at);
        putting.heads[piece] = {kFrameMagic, static_cast<std::uint32_t>(rank_),
                                ticket,      region,
                                offset + at, putting.bytes};
        void* request = (*library_)->ucp_am_send_nbx(peer.endpoints[static_cast<std::size_t>(rail)],
                                                     kPieceId, &putting.heads[piece],
                                                     sizeof(PieceHead), source + at, bytes, &how);
        ++putting.steps;
        if (!UCS_PTR_IS_PTR(request)) finish_step(putting, UCS_PTR_STATUS(request));
    }
}

ucs_status_t UcxTransport::on_piece(void* transport, const void* header, std::size_t header_length,
                                    void* data, std::size_t length,
                                    const ucp_am_recv_param_t* param) {
    auto& self = *static_cast<UcxTransport*>(transport);
    PieceHead head{};
    if (header_length == sizeof head) std::memcpy(&head, header, sizeof head);
    const bool whole = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0;
    if (head.magic == kFrameMagic && head.from < self.peers_.size() && whole)
        self.take_piece(head, {static_cast<const std::byte*>(data), length});
    else
        log::error("ucx: a piece of a put of {} bytes came from nobody of this job", length);
    return UCS_OK;
}

void UcxTransport::take_piece(const PieceHead& head, ConstSpan data) {
    Peer& peer = peer_of(static_cast<int>(head.from));
    if (receiver_ == nullptr || !peer.lost.ok()) return;
    ++events_;
    std::byte* place = memory_->at(head.region, head.offset, data.size());
    if (place != nullptr && !data.empty()) std::memcpy(place, data.data(), data.size());
    if (place != nullptr && data.size() < head.whole) {
        Bytes& missing = peer.arriving.try_emplace(head.ticket, head.whole).first->second;
        missing -= std::min<Bytes>(missing, data.size());
        if (missing > 0) return;
        peer.arriving.erase(head.ticket);
    }
    const PutAnswer answer{head.ticket, place == nullptr ? 1u : 0u};
    Status said = append(peer, kPutAnswer, std::as_bytes(std::span(&answer, 1)), {});
    if (!said.ok()) log::error("{}", said.text());
    visit_in_progress(peer);
}

void UcxTransport::on_put_answer(Peer& peer, ConstSpan header) {
    PutAnswer answer{};
    if (header.size() == sizeof answer) std::memcpy(&answer, header.data(), sizeof answer);
    const auto found = peer.unanswered.find(answer.ticket);
    if (found == peer.unanswered.end()) return;  // a second refusal of the same put
    Putting& putting = *found->second;
    peer.unanswered.erase(found);
    finish_step(putting, answer.refused != 0 ? UCS_ERR_INVALID_ADDR : UCS_OK);
}

void UcxTransport::fail_unanswered(Peer& peer) {
    for (const auto& [ticket, putting] : std::exchange(peer.unanswered, {}))
        finish_step(*putting, UCS_ERR_CONNECTION_RESET);
}

void UcxTransport::on_put(void* request, ucs_status_t status, void* arg) {
    auto& putting = *static_cast<Putting*>(arg);
    (*putting.owner->library_)->ucp_request_free(request);
    ++putting.owner->events_;
    putting.owner->finish_step(putting, status);
}

// A card tells a put of a broken connection before, or instead of, the connection's handler.
Status UcxTransport::failure_of(const Putting& putting) {
    Peer& peer = peer_of(putting.peer);
    switch (putting.status) {
        case UCS_ERR_NO_MEMORY:
        case UCS_ERR_INVALID_PARAM:
        case UCS_ERR_INVALID_ADDR:
        case UCS_ERR_UNSUPPORTED:
            return library_->failed(
                fmt::format("putting {} bytes to rank {}", putting.bytes, putting.peer),
                putting.status);
        default: on_error(&peer, nullptr, putting.status); return loss_of(peer, putting.status);
    }
}

void UcxTransport::finish_step(Putting& putting, ucs_status_t status) {
    if (status != UCS_OK && putting.status == UCS_OK) putting.status = status;
    if (--putting.steps > 0) return;
    --in_flight_;
    if (putting.key != nullptr) --putting.key->users;
    const std::unique_ptr<Putting> ended(&putting);
    if (receiver_ == nullptr) return;  // nobody waits any more
    putting.done->complete(putting.status == UCS_OK ? success() : failure_of(putting));
}

}  // namespace gantry::transport::ucx
