// SPDX-License-Identifier: BSD-3-Clause
//
// Remote memory of the UCX transport. `done` promises that the bytes are at the peer.
//
// Where a card writes without the peer's processor: a put of UCX, which ends when its source may be
// reused, and a flush behind it. Over TCP alone, or datagrams, that costs two round trips and half the rate:
// there a put goes as messages, straight from the source, in pieces that the peer finds in one
// receive buffer, copies to their place, and answers once for all; over TCP a large one goes straight to its
// place by a connection of our own (bulk.cpp).
#include "base/log.hpp"
#include "transport/ucx/peer.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace gantry::transport::ucx {
namespace {

// One message of UCX over TCP holds 64 KiB with its headers.
constexpr Bytes kPieceBytes = 64 * kKiB;

}  // namespace

Result<Region> UcxTransport::register_memory(const Extent& extent) {
    return memory_->add(extent);
}
void UcxTransport::release_memory(const Region& region) {
    if (memory_) memory_->remove(region);
}
RemoteKey UcxTransport::key(const Region& region) const {
    return memory_->key(region);
}

// Whether memory of the peer can be reached by that rail. The first use of a peer connects to it.
Status UcxTransport::reach(Peer& peer, int rail, const KeyView& key) {
    if (!peer.lost.ok()) return peer.lost;
    if (key.packed.empty())
        return failure(MPI_ERR_INTERN, "rank {} sent no key for rail {} of its memory", peer.rank,
                       rail);
    if (!peer.connected && !peer.broken && !peer.left) GANTRY_TRY(connect(peer));
    const RailTo& way = peer.rails[static_cast<std::size_t>(rail)];
    if (!peer.connected || peer.broken || !way.may_carry() || way.endpoint == nullptr)
        return failure(MPI_ERR_PROC_ABORTED, "the memory of rank {}, which cannot be reached",
                       peer.rank);
    return success();
}

void UcxTransport::put(int rank, int rail, const void* source, Bytes bytes, const Region& from,
                       const RemoteKey& key, Bytes offset, Completion& done) {
    Peer& peer = peer_of(rank);
    const KeyView view = read_key(key, rail);
    if (Status unreached = reach(peer, rail, view)) return done.complete(unreached);
    RailTo& way = peer.rails[static_cast<std::size_t>(rail)];
    RemoteKeys::Key* unpacked = nullptr;
    const bool by_messages = goes_by_messages(rail);
    if (!by_messages) {
        Result<RemoteKeys::Key*> read =
            peer.keys.unpack(*library_, way.endpoint, rail, view.packed, keys_);
        if (!read.ok())
            return done.complete(read.status().with(fmt::format("a put to rank {}", rank)));
        unpacked = *read;
    }
    auto* putting = new (std::nothrow) Putting{this, &done, unpacked, 1, UCS_OK, rank, rail, bytes};
    if (putting == nullptr)
        return done.complete(failure(MPI_ERR_NO_MEM, "no memory for a put of {} bytes", bytes));
    ++in_flight_;
    ++way.puts;
    // With several rails all go straight: to close that connection ends what it carries.
    const bool straight = by_messages && (several() || bytes >= config_.tcp_zero_copy);
    Bulk* bulk = straight ? bulk_to(peer, rail) : nullptr;
    if (bulk != nullptr)
        put_zero_copy(*bulk, static_cast<const std::byte*>(source), *putting, view.region, offset,
                      nullptr);
    else if (by_messages)
        put_by_messages(peer, rail, static_cast<const std::byte*>(source), *putting, view.region,
                        offset);
    else
        put_one_sided(peer, rail, source, from, *putting, view.address + offset);
    finish_step(*putting, UCS_OK);  // the one it began with: all is posted, so it may end now
}

// Only where data and message take one stream, which keeps them in order.
bool UcxTransport::put_and_tell(int rank, int rail, const void* source, Bytes bytes, const Region&,
                                const RemoteKey& key, Bytes offset, MessageKind kind,
                                ConstSpan header, Completion& done) {
    Peer& peer = peer_of(rank);
    const KeyView view = read_key(key, rail);
    if (several() || !peer.lost.ok() || peer.broken || !peer.connected || view.packed.empty() ||
        !goes_by_messages(rail) || bytes < config_.tcp_zero_copy)
        return false;
    Bulk* bulk = bulk_to(peer, rail);
    if (bulk == nullptr) return false;
    Frame* frame = frames_.take(Frame::record_bytes(header.size(), 0));
    if (frame == nullptr) return false;
    auto* putting = new (std::nothrow) Putting{this, &done, nullptr, 1, UCS_OK, rank, rail, bytes};
    if (putting == nullptr) {
        frames_.give(frame);
        return false;
    }
    frame->begin(rank_);
    frame->append(kind, header, {});
    ++in_flight_;
    ++peer.rails[static_cast<std::size_t>(rail)].puts;
    put_zero_copy(*bulk, static_cast<const std::byte*>(source), *putting, view.region, offset,
                  frame);
    finish_step(*putting, UCS_OK);
    return true;
}

// `known`: the memory at this end.
ucp_request_param_t UcxTransport::how_of(Putting& putting, const Memory::Source& known) {
    ucp_request_param_t how{};
    how.op_attr_mask =
        UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    how.cb.send = &UcxTransport::on_put;
    how.user_data = &putting;
    how.memory_type = known.type;
    if (known.handle != nullptr) {  // else UCX registers it itself, or copies
        how.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
        how.memh = known.handle;
    }
    return how;
}

void UcxTransport::put_one_sided(Peer& peer, int rail, const void* source, const Region& from,
                                 Putting& putting, std::uint64_t address) {
    ++putting.key->users;
    // The end of each part shows that the rail carries (rails.cpp).
    const Bytes most = several() ? config_.rail_part : std::max<Bytes>(putting.bytes, 1);
    const Bytes parts = std::max<Bytes>(divide_up(putting.bytes, most), 1);
    putting.steps += static_cast<int>(parts) + 1;
    ucp_ep_h endpoint = peer.rails[static_cast<std::size_t>(rail)].endpoint;
    ucp_request_param_t how = how_of(putting, memory_->source(from, rail));
    for (Bytes part = 0; part < parts; ++part) {
        const Bytes at = part * most;
        void* request = (*library_)->ucp_put_nbx(
            endpoint, static_cast<const std::byte*>(source) + at,
            std::min(most, putting.bytes - at), address + at, putting.key->key, &how);
        if (!UCS_PTR_IS_PTR(request)) finish_step(putting, UCS_PTR_STATUS(request));
    }
    how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    void* request = (*library_)->ucp_ep_flush_nbx(endpoint, &how);
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
        void* request = (*library_)->ucp_am_send_nbx(
            peer.rails[static_cast<std::size_t>(rail)].endpoint, kPieceId, &putting.heads[piece],
            sizeof(PieceHead), source + at, bytes, &how);
        ++putting.steps;
        if (!UCS_PTR_IS_PTR(request)) finish_step(putting, UCS_PTR_STATUS(request));
        if (UCS_PTR_IS_ERR(request)) return expect_no_answer(peer, putting);
    }
}

// Of a put by message that did not leave whole.
void UcxTransport::expect_no_answer(Peer& peer, Putting& putting) {
    if (peer.unanswered.erase(putting.heads[0].ticket) > 0) finish_step(putting, putting.status);
}

ucs_status_t UcxTransport::on_piece(void* listening, const void* header, std::size_t header_length,
                                    void* data, std::size_t length,
                                    const ucp_am_recv_param_t* param) {
    const Listening& heard = *static_cast<const Listening*>(listening);
    UcxTransport& self = *heard.owner;
    PieceHead head{};
    if (header_length == sizeof head) std::memcpy(&head, header, sizeof head);
    const bool known = head.magic == kFrameMagic && head.from < self.peers_.size() &&
                       (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0;
    if (known)
        self.take_piece(head, heard.rail, {static_cast<const std::byte*>(data), length});
    else
        log::error("ucx: a piece of a put of {} bytes came from nobody of this job", length);
    return UCS_OK;
}

void UcxTransport::take_piece(const PieceHead& head, int rail, ConstSpan data) {
    Peer& peer = peer_of(static_cast<int>(head.from));
    if (receiver_ == nullptr || !peer.lost.ok()) return;
    if (head.ticket < peer.rails[static_cast<std::size_t>(rail)].void_below) return;
    ++events_;
    std::byte* place = memory_->at(head.region, head.offset, data.size());
    if (place != nullptr && !data.empty()) std::memcpy(place, data.data(), data.size());
    if (place != nullptr && data.size() < head.whole) {
        Bytes& missing = peer.arriving.try_emplace(head.ticket, Peer::Arriving{rail, head.whole})
                             .first->second.missing;
        missing -= std::min<Bytes>(missing, data.size());
        if (missing > 0) return;
        peer.arriving.erase(head.ticket);
    }
    answer_put(peer, head.ticket, place == nullptr ? Answer::refused : Answer::in_place);
}

void UcxTransport::answer_put(Peer& peer, std::uint64_t ticket, Answer how) {
    const PutAnswer answer{ticket, how == Answer::refused ? 1u : 0u};
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

void UcxTransport::fail_unanswered(Peer& peer, int rail) {
    std::vector<Putting*> failed;
    std::erase_if(peer.unanswered, [&](const auto& each) {
        if (rail >= 0 && each.second->rail != rail) return false;
        failed.push_back(each.second);
        return true;
    });
    for (Putting* putting : failed)
        finish_step(*putting, UCS_ERR_CONNECTION_RESET);
}

void UcxTransport::on_put(void* request, ucs_status_t status, void* arg) {
    auto& putting = *static_cast<Putting*>(arg);
    (*putting.owner->library_)->ucp_request_free(request);
    UcxTransport& self = *putting.owner;
    ++self.events_;
    if (status == UCS_OK)
        self.show_life(self.peer_of(putting.peer).rails[static_cast<std::size_t>(putting.rail)]);
    self.finish_step(putting, status);
}

namespace {

// Of the put itself, and not of its connection.
bool is_its_own(ucs_status_t status) {
    return status == UCS_ERR_NO_MEMORY || status == UCS_ERR_INVALID_PARAM ||
           status == UCS_ERR_INVALID_ADDR || status == UCS_ERR_UNSUPPORTED;
}

}  // namespace

// A card tells a put of a broken connection before, or instead of, the connection's handler.
Status UcxTransport::failure_of(const Putting& putting) {
    Peer& peer = peer_of(putting.peer);
    if (is_its_own(putting.status)) {
        const bool puts = putting.kind == Putting::Kind::put;
        return library_->failed(fmt::format("{} {} bytes {} rank {}", puts ? "putting" : "getting",
                                            putting.bytes, puts ? "to" : "from", putting.peer),
                                putting.status);
    }
    if (several() && peer.lost.ok())
        return failure(MPI_ERR_PROC_ABORTED, "rail {} to rank {} failed", putting.rail, peer.rank);
    if (!several()) note_broken(peer.rails.front(), putting.status);
    return loss_of(peer, putting.status);
}

void UcxTransport::finish_step(Putting& putting, ucs_status_t status) {
    if (status != UCS_OK && putting.status == UCS_OK) putting.status = status;
    if (--putting.steps > 0) return;
    if (putting.status != UCS_OK && !is_its_own(putting.status) && hold(putting)) return;
    end(putting);
}

void UcxTransport::end(Putting& putting) {
    --in_flight_;
    --peer_of(putting.peer).rails[static_cast<std::size_t>(putting.rail)].puts;
    if (putting.key != nullptr) --putting.key->users;
    const std::unique_ptr<Putting> ended(&putting);
    if (receiver_ == nullptr) return;  // nobody waits any more
    putting.done->complete(putting.status == UCS_OK ? success() : failure_of(putting));
}

}  // namespace gantry::transport::ucx
