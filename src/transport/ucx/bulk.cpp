// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ucx/bulk.hpp"

#include "base/log.hpp"
#include "transport/ucx/peer.hpp"

#include <ifaddrs.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace gantry::transport::ucx {
namespace {

bool is_loopback(in_addr_t address) {
    return (ntohl(address) >> 24) == IN_LOOPBACKNET;
}

}  // namespace

std::vector<Network> networks_of(const Rail& rail) {
    std::vector<Network> found;
    ifaddrs* list = nullptr;
    if (getifaddrs(&list) != 0) return found;
    for (const std::string& resource : rail.resources())
        for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
            if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
            if (resource != std::string("tcp/") + one->ifa_name) continue;
            sockaddr_in address{}, mask{};
            std::memcpy(&address, one->ifa_addr, sizeof address);
            std::memcpy(&mask, one->ifa_netmask, sizeof mask);
            found.push_back({address.sin_addr.s_addr, mask.sin_addr.s_addr});
        }
    freeifaddrs(list);
    return found;
}

std::optional<sockaddr_in> choose_address(const BulkAddress& theirs,
                                          const std::vector<Network>& ours, SameHost same_host) {
    const auto may_be_theirs = [&](in_addr_t host) {
        return same_host == SameHost::yes || !is_loopback(host);
    };
    const auto near = [&](in_addr_t host) {
        return may_be_theirs(host) && std::ranges::any_of(ours, [&](const Network& network) {
                   return ((host ^ network.address) & network.mask) == 0;
               });
    };
    auto found = std::ranges::find_if(theirs.hosts, near);
    if (found == theirs.hosts.end()) found = std::ranges::find_if(theirs.hosts, may_be_theirs);
    if (theirs.port == 0 || found == theirs.hosts.end()) return std::nullopt;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = theirs.port;
    address.sin_addr.s_addr = *found;
    return address;
}

// --- the side that puts
// ---------------------------------------------------------------------------

// The endpoint for a large put; null while there is none.
ucp_ep_h UcxTransport::bulk_to(Peer& peer, int rail, Bytes bytes) {
    if (config_.tcp_straight == 0 || bytes < config_.tcp_straight) return nullptr;
    if (peer.bulk.empty()) peer.bulk.resize(rails_.size());
    std::unique_ptr<Bulk>& bulk = peer.bulk[static_cast<std::size_t>(rail)];
    if (bulk == nullptr) bulk = open_bulk(peer, rail);
    return bulk->state == Bulk::State::open ? bulk->endpoint : nullptr;
}

std::unique_ptr<UcxTransport::Bulk> UcxTransport::open_bulk(const Peer& peer, int rail) {
    auto bulk = std::make_unique<Bulk>(Bulk{this, nullptr, Bulk::State::refused, {}});
    Result<WireUpOf> known = wire_up_of(peer.rank);
    if (!known.ok()) return bulk;
    const auto index = static_cast<std::size_t>(rail);
    const SameHost same_host = job_->nodes()[static_cast<std::size_t>(peer.rank)] ==
                                       job_->nodes()[static_cast<std::size_t>(rank_)]
                                   ? SameHost::yes
                                   : SameHost::no;
    const std::optional<sockaddr_in> address =
        choose_address(known->rails[index].bulk, networks_of(rails_[index]), same_host);
    if (!address) return bulk;
    ucp_ep_params_t wanted{};
    wanted.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR |
                        UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    wanted.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    wanted.sockaddr.addr = reinterpret_cast<const sockaddr*>(&*address);
    wanted.sockaddr.addrlen = sizeof *address;
    wanted.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    wanted.err_handler.cb = &UcxTransport::on_bulk_error;
    wanted.err_handler.arg = bulk.get();
    if ((*library_)->ucp_ep_create(rails_[index].worker(), &wanted, &bulk->endpoint) != UCS_OK) {
        bulk->endpoint = nullptr;
        return bulk;
    }
    bulk->state = Bulk::State::asked;
    bulk->hello = {kFrameMagic, static_cast<std::uint32_t>(rank_),
                   static_cast<std::uint32_t>(peer.rank), static_cast<std::uint32_t>(rail),
                   known->cookie};
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                       UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    how.cb.send = &UcxTransport::on_hello_sent;
    how.user_data = this;  // not counted as in flight: who leaves does not wait for a connection
    how.flags = UCP_AM_SEND_FLAG_EAGER | UCP_AM_SEND_FLAG_REPLY;
    how.memory_type = UCS_MEMORY_TYPE_HOST;
    void* request = (*library_)->ucp_am_send_nbx(bulk->endpoint, kHelloId, nullptr, 0, &bulk->hello,
                                                 sizeof bulk->hello, &how);
    if (UCS_PTR_IS_ERR(request)) bulk->state = Bulk::State::refused;
    log::debug("ucx: opening a bulk connection to rank {}", peer.rank);
    return bulk;
}

void UcxTransport::on_hello_sent(void* request, ucs_status_t, void* arg) {
    auto& self = *static_cast<UcxTransport*>(arg);
    (*self.library_)->ucp_request_free(request);
}

void UcxTransport::on_bulk_open(Peer& peer, ConstSpan header) {
    std::uint64_t rail = peer.bulk.size();
    if (header.size() == sizeof rail) std::memcpy(&rail, header.data(), sizeof rail);
    if (rail >= peer.bulk.size() || peer.bulk[rail] == nullptr) return;
    if (peer.bulk[rail]->state == Bulk::State::asked) peer.bulk[rail]->state = Bulk::State::open;
}

// Called by UCX in the middle of its progress, as on_error is.
void UcxTransport::on_bulk_error(void* arg, ucp_ep_h, ucs_status_t status) {
    auto& bulk = *static_cast<Bulk*>(arg);
    UcxTransport& self = *bulk.owner;
    if (std::exchange(bulk.state, Bulk::State::refused) == Bulk::State::open)
        self.suspect(self.peer_of(static_cast<int>(bulk.hello.to)), status);
    self.bulk_broken_ = true;
    log::debug("ucx: a bulk connection ended: {}", self.library_->text(status));
}

void UcxTransport::close_bulk(Peer& peer) {
    for (const auto& bulk : peer.bulk) {
        if (bulk == nullptr) continue;
        bulk->state = Bulk::State::refused;
        close_by_force(std::exchange(bulk->endpoint, nullptr));
    }
    for (const auto& accepted : accepted_)
        if (accepted->rank == peer.rank) close_by_force(std::exchange(accepted->endpoint, nullptr));
}

void UcxTransport::close_broken_bulk() {
    bulk_broken_ = false;
    for (const auto& peer : peers_)
        for (const auto& bulk : peer->bulk)
            if (bulk != nullptr && bulk->state == Bulk::State::refused)
                close_by_force(std::exchange(bulk->endpoint, nullptr));
    for (const auto& accepted : accepted_)
        if (accepted->broken) close_by_force(std::exchange(accepted->endpoint, nullptr));
}

void UcxTransport::close_by_force(ucp_ep_h endpoint) {
    if (endpoint == nullptr) return;
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    how.flags = UCP_EP_CLOSE_FLAG_FORCE;
    void* request = (*library_)->ucp_ep_close_nbx(endpoint, &how);
    if (UCS_PTR_IS_PTR(request)) closing_.push_back(request);
}

void UcxTransport::put_straight(ucp_ep_h endpoint, Peer& peer, const std::byte* source,
                                Putting& putting, std::uint64_t region, Bytes offset) {
    putting.heads.reset(new (std::nothrow) PieceHead[1]);
    if (putting.heads == nullptr) {
        putting.status = UCS_ERR_NO_MEMORY;
        return;
    }
    const std::uint64_t ticket = next_ticket_++;
    putting.steps += 2;  // the answer, and the source
    peer.unanswered.emplace(ticket, &putting);
    putting.heads[0] = {kFrameMagic,  static_cast<std::uint32_t>(rank_), ticket, region, offset,
                        putting.bytes};
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                       UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    how.cb.send = &UcxTransport::on_put;
    if (forgets_straight_puts_)
        how.cb.send = [](void* ended, ucs_status_t, void* arg) {
            (*static_cast<Putting*>(arg)->owner->library_)->ucp_request_free(ended);
        };
    how.user_data = &putting;
    how.flags = UCP_AM_SEND_FLAG_RNDV;
    how.memory_type = UCS_MEMORY_TYPE_HOST;
    void* request = (*library_)->ucp_am_send_nbx(endpoint, kPieceId, &putting.heads[0],
                                                 sizeof(PieceHead), source, putting.bytes, &how);
    ++straight_puts_;
    peer.straight.push_back(&putting);
    if (!UCS_PTR_IS_PTR(request)) finish_step(putting, UCS_PTR_STATUS(request));
    if (UCS_PTR_IS_ERR(request)) expect_no_answer(peer, putting);
}

// The puts of a lost peer that UCX has not given back in time.
void UcxTransport::abandon_straight(Peer& peer) {
    for (Putting* putting : std::exchange(peer.straight, {})) {
        log::debug("ucx: a put of {} bytes to rank {} was forgotten", putting->bytes, peer.rank);
        --in_flight_;
        forgotten_.emplace_back(putting);
        std::exchange(putting->done, nullptr)->complete(loss_of(peer, UCS_ERR_CONNECTION_RESET));
    }
}

// --- the side that is put to
// ----------------------------------------------------------------------

void UcxTransport::on_connection(ucp_conn_request_h request, void* listening) {
    const auto& [self, worker] = *static_cast<Listening*>(listening);
    auto accepted = std::make_unique<Accepted>(Accepted{self, nullptr, -1, false});
    ucp_ep_params_t wanted{};
    wanted.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                        UCP_EP_PARAM_FIELD_ERR_HANDLER;
    wanted.conn_request = request;
    wanted.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    wanted.err_handler.cb = &UcxTransport::on_accepted_error;
    wanted.err_handler.arg = accepted.get();
    const ucs_status_t status =
        (*self->library_)->ucp_ep_create(worker, &wanted, &accepted->endpoint);
    if (status == UCS_OK)
        self->accepted_.push_back(std::move(accepted));
    else
        log::debug("ucx: a bulk connection was not accepted: {}", self->library_->text(status));
}

void UcxTransport::on_accepted_error(void* arg, ucp_ep_h, ucs_status_t status) {
    auto& accepted = *static_cast<Accepted*>(arg);
    UcxTransport& self = *accepted.owner;
    accepted.broken = true;
    if (accepted.rank >= 0) self.suspect(self.peer_of(accepted.rank), status);
    self.bulk_broken_ = true;
}

ucs_status_t UcxTransport::on_hello(void* listening, const void*, std::size_t, void* data,
                                    std::size_t length, const ucp_am_recv_param_t* param) {
    UcxTransport& self = *static_cast<Listening*>(listening)->owner;
    Hello hello{};
    if (length == sizeof hello && (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0)
        std::memcpy(&hello, data, sizeof hello);
    const bool for_us = hello.magic == kFrameMagic && hello.from < self.peers_.size() &&
                        hello.to == static_cast<std::uint32_t>(self.rank_) &&
                        hello.cookie == self.cookie_;
    if (!for_us || self.receiver_ == nullptr) return UCS_OK;  // it stays with pieces
    Peer& peer = self.peer_of(static_cast<int>(hello.from));
    if (!peer.lost.ok()) return UCS_OK;
    if ((param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0)
        for (const auto& accepted : self.accepted_)
            if (accepted->endpoint == param->reply_ep) accepted->rank = peer.rank;
    const std::uint64_t rail = hello.rail;
    Status said = self.append(peer, kBulkOpen, std::as_bytes(std::span(&rail, 1)), {});
    if (!said.ok()) log::error("{}", said.text());
    self.visit_in_progress(peer);
    return UCS_OK;
}

// UCX writes into the place; nothing else may be told of the peer's end before it has stopped.
ucs_status_t UcxTransport::take_straight(const PieceHead& head, void* data, Bytes bytes,
                                         ucp_worker_h worker) {
    Peer& peer = peer_of(static_cast<int>(head.from));
    if (receiver_ == nullptr || !peer.lost.ok()) return UCS_OK;
    ++events_;
    std::byte* place = memory_->at(head.region, head.offset, bytes);
    auto* taking = place != nullptr ? new (std::nothrow)
                                          Taking{this, peer.rank, head.ticket, nullptr}
                                    : nullptr;
    if (taking == nullptr) {  // UCX drops what we do not ask for
        answer_put(peer, head.ticket, Answer::refused);
        return UCS_OK;
    }
    return receive_rendezvous(peer, *taking, worker, data, place, bytes) ? UCS_INPROGRESS : UCS_OK;
}

bool UcxTransport::receive_rendezvous(Peer& peer, Taking& taking, ucp_worker_h worker, void* data,
                                      void* sink, Bytes bytes) {
    peer.taking.insert(&taking);
    ucp_request_param_t how{};
    how.op_attr_mask =
        UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    how.cb.recv_am = &UcxTransport::on_taken;
    how.user_data = &taking;
    how.memory_type = UCS_MEMORY_TYPE_HOST;
    void* request = (*library_)->ucp_am_recv_data_nbx(worker, data, sink, bytes, &how);
    if (UCS_PTR_IS_PTR(request)) return true;
    finish_taking(taking, UCS_PTR_STATUS(request));
    return false;
}

void UcxTransport::on_taken(void* request, ucs_status_t status, std::size_t, void* arg) {
    auto& taking = *static_cast<Taking*>(arg);
    (*taking.owner->library_)->ucp_request_free(request);
    taking.owner->finish_taking(taking, status);
}

// An error is of the connection, whose own handler hears of it.
void UcxTransport::finish_taking(Taking& taking, ucs_status_t status) {
    const std::unique_ptr<Taking> ended(&taking);
    Peer& peer = peer_of(taking.peer);
    peer.taking.erase(&taking);
    ++events_;
    if (taking.ticket == 0) {
        if (taking.done != nullptr && receiver_ != nullptr)
            taking.done->complete(end_of_loan(peer, status));
        return;
    }
    if (status == UCS_OK && receiver_ != nullptr && peer.lost.ok())
        answer_put(peer, taking.ticket, Answer::in_place);
}

}  // namespace gantry::transport::ucx
