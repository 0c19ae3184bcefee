// SPDX-License-Identifier: BSD-3-Clause
//
// Connections to peers, one for each rail, and their losses.
#include "base/log.hpp"
#include "transport/ucx/peer.hpp"

#include <algorithm>

namespace gantry::transport::ucx {

Status UcxTransport::connect(Peer& peer) {
    Result<WireUpOf> known = wire_up_of(peer.rank);
    GANTRY_TRY(known.status());
    Status refused;
    for (RailTo& rail : peer.rails) {
        if (rail.state != RailTo::State::up) continue;
        Status connected = connect_rail(rail, *known);
        if (connected.ok()) {
            peer.connected = true;
            continue;
        }
        log::info("ucx: rail {} to rank {} is not there yet: {}", rail.index, peer.rank,
                  connected.text());
        if (refused.ok()) refused = std::move(connected);
        if (!several()) break;
        rail.state = RailTo::State::down;  // tried again, if there is another one
        rail.peer_is_back = true;
        try_later(rail, clock_.now());
    }
    if (!peer.connected) {
        for (RailTo& rail : peer.rails)
            rail.state = RailTo::State::up;
        return refused;
    }
    log::debug("ucx: connecting to rank {}", peer.rank);
    if (several() || keeps_cards_alive_) connected_.push_back(&peer);
    if (!several()) return success();
    for (RailTo& rail : peer.rails)
        if (rail.state == RailTo::State::up) open_tcp_keepalive(rail, clock_.now());
    return success();
}

Status UcxTransport::connect_rail(RailTo& rail, const WireUpOf& known) {
    const auto index = static_cast<std::size_t>(rail.index);
    ucp_ep_params_t wanted{};
    wanted.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                        UCP_EP_PARAM_FIELD_ERR_HANDLER;
    wanted.address = reinterpret_cast<const ucp_address_t*>(known.rails[index].worker.data());
    wanted.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    wanted.err_handler.cb = &UcxTransport::on_error;
    wanted.err_handler.arg = &rail;
    const ucs_status_t status =
        (*library_)->ucp_ep_create(rails_[index].worker(), &wanted, &rail.endpoint);
    if (status == UCS_OK) {
        open_card_keepalive(rail, known);
        return success();
    }
    rail.endpoint = nullptr;
    return library_->failed(
        fmt::format("connecting to rank {}{}", rail.peer->rank,
                    status == UCS_ERR_UNREACHABLE
                        ? " (gantry doctor lists the network's devices; UCX_TLS and "
                          "UCX_NET_DEVICES leave some out)"
                        : ""),
        status);
}

// Called by UCX in the middle of its progress: only notes it.
void UcxTransport::on_error(void* arg, ucp_ep_h endpoint, ucs_status_t status) {
    RailTo& rail = *static_cast<RailTo*>(arg);
    if (endpoint == rail.endpoint) rail.peer->owner.note_broken(rail, status);
}

void UcxTransport::note_broken(RailTo& rail, ucs_status_t status) {
    if (std::exchange(rail.broken, true)) return;
    if (!several()) rail.peer->broken = true;
    broken_.emplace_back(&rail, status);
}

void UcxTransport::note_broken(Peer& peer, ucs_status_t status) {
    peer.broken = true;
    note_broken(peer.rails.front(), status);
}

Status UcxTransport::loss_of(const Peer& peer, ucs_status_t status) const {
    if (!peer.lost.ok()) return peer.lost;
    return failure(MPI_ERR_PROC_ABORTED,
                   "rank {} is lost: the connection to it broke (UCX says '{}'); it has ended "
                   "without leaving MPI, or its host cannot be reached any more",
                   peer.rank, library_->text(status));
}

void UcxTransport::handle_broken() {
    for (const auto& [rail, status] : std::exchange(broken_, {})) {
        Peer& peer = *rail->peer;
        if (several() && !peer.broken) {
            if (rail->state == RailTo::State::failing || rail->state == RailTo::State::down) {
                rail->broken = false;
                continue;
            }
            const bool alone = !peer.left && stage_ <= Stage::draining &&
                               (rail->state == RailTo::State::trying || another_carries(*rail));
            if (alone) {
                fail_rail(*rail, library_->text(status));
                answer_closed(*rail);
                continue;
            }
        }
        if (!peer.lost.ok()) continue;
        peer.broken = true;
        lose(peer, status);
    }
}

void UcxTransport::lose(Peer& peer, ucs_status_t status) {
    const bool lost = !peer.left && stage_ == Stage::running;
    for (std::size_t at = 0; lost && at < accepted_.size(); ++at)  // what had arrived before
        if (accepted_[at]->from == peer.rank && accepted_[at]->stream.open()) read(*accepted_[at]);
    if (lost) {
        peer.lost = loss_of(peer, status);
        log::info("ucx: {}", peer.lost.text());
    }
    peer.keys.drop(*library_);
    close_endpoints(peer, UCP_EP_CLOSE_FLAG_FORCE);
    close_bulk(peer, lost ? Incoming::closed : Incoming::read_to_its_end);
    drop_frames(peer);
    fail_unanswered(peer, -1);
    for (RailTo& rail : peer.rails)
        release_held(rail);
    std::erase(connected_, &peer);
    std::erase_if(received_tcp_keepalives_,
                  [&](const auto& tcp_keepalive) { return tcp_keepalive.from == peer.rank; });
    ++events_;
    if (lost) receiver_->on_peer_lost(peer.rank, peer.lost);
}

void UcxTransport::peer_died(int rank, const Status& why) {
    if (!reaches(rank)) return;
    Peer& peer = peer_of(rank);
    if (peer.left || !peer.lost.ok() || stage_ != Stage::running) return;
    progress();  // what had arrived before
    if (!peer.lost.ok()) return;
    peer.broken = true;
    peer.lost = why;
    lose(peer, UCS_ERR_ENDPOINT_TIMEOUT);
}

void UcxTransport::close_endpoint(RailTo& rail, unsigned flags) {
    ucp_ep_h endpoint = std::exchange(rail.endpoint, nullptr);
    if (endpoint == nullptr) return;
    close_card_keepalive(rail);
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    how.flags = flags;
    void* request = (*library_)->ucp_ep_close_nbx(endpoint, &how);
    if (UCS_PTR_IS_PTR(request)) closing_.push_back(request);
}

void UcxTransport::close_endpoints(Peer& peer, unsigned flags) {
    peer.connected = false;
    for (RailTo& rail : peer.rails) {
        // What is only tried carries nothing, and the other end may be gone.
        const bool tried = rail.state == RailTo::State::trying;
        close_endpoint(rail, tried ? unsigned{UCP_EP_CLOSE_FLAG_FORCE} : flags);
        rail.tcp_keepalive.close();
    }
}

void UcxTransport::watch_closing() {
    std::erase_if(closing_, [this](void* request) {
        if ((*library_)->ucp_request_check_status(request) == UCS_INPROGRESS) return false;
        (*library_)->ucp_request_free(request);
        return true;
    });
}

}  // namespace gantry::transport::ucx
