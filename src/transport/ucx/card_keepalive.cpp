// SPDX-License-Identifier: BSD-3-Clause
//
// CardKeepalives: whether a peer is there, over cards. What a TCP keepalive (tcp_keepalive.hpp) is to a rail over TCP: a word put
// into one of the peer's, and a flush behind it. The peer's card acknowledges both, even while its
// program computes, and they take none of its receive buffers. Nobody reads the word.
//
//   us                                          the peer's card
//     | == 8 bytes into its word, flush ======> |
//     | <====== acknowledgement of the card === |
//
// With one rail a card keepalive goes each GANTRY_CARD_KEEPALIVE: so whoever only waits learns that the peer is gone, by
// UCX's error handler. With several, rails.cpp card keepalives as it does TCP keepalives, and judges who is silent.
#include "transport/ucx/peer.hpp"

#include "base/log.hpp"

namespace gantry::transport::ucx {
namespace {

// Turns of progress between looks at the clock. A turn takes tens of nanoseconds to some microseconds:
// so few are in time for any card keepalive that makes sense, and the price of a look is not felt.
constexpr unsigned kTurns = 256;

}  // namespace

void UcxTransport::open_card_keepalive(RailTo& rail, const WireUpOf& known) {
    const WireUpOf::OfRail& there = known.rails[static_cast<std::size_t>(rail.index)];
    rail.card_keepalive.waits_since.reset();
    rail.card_keepalive.answered.reset();
    if (there.card_keepalive_key.empty() ||
        rails_[static_cast<std::size_t>(rail.index)].only_messages())
        return;
    const ucs_status_t status = (*library_)->ucp_ep_rkey_unpack(
        rail.endpoint, there.card_keepalive_key.data(), &rail.card_keepalive.word);
    if (status == UCS_OK) {
        rail.card_keepalive.address = there.card_keepalive_word;
        return;
    }
    rail.card_keepalive.word = nullptr;
    log::info("ucx: no card keepalives to rank {} by rail {}: {}", rail.peer->rank, rail.index,
              library_->text(status));
}

// Before its endpoint goes.
void UcxTransport::close_card_keepalive(RailTo& rail) {
    if (rail.card_keepalive.word != nullptr)
        (*library_)->ucp_rkey_destroy(std::exchange(rail.card_keepalive.word, nullptr));
    rail.card_keepalive.untrue = rail.card_keepalive.steps > 0;
    rail.card_keepalive.waits_since.reset();
    rail.card_keepalive.answered.reset();
}

void UcxTransport::send_keepalive(RailTo& rail, Nanoseconds now) {
    static constexpr std::uint64_t kNothing = 0;  // UCX reads it until it has left
    rail.last_keepalive = now;
    rail.tcp_keepalive.send_keepalive(now);
    RailTo::CardKeepalive& card_keepalive = rail.card_keepalive;
    if (card_keepalive.word == nullptr || card_keepalive.steps > 0) return;
    card_keepalive.waits_since = now;
    card_keepalive.steps = 3;  // put, flush, and this call
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    how.cb.send = &UcxTransport::on_keepalive;
    how.user_data = &rail;
    void* request = (*library_)->ucp_put_nbx(rail.endpoint, &kNothing, sizeof kNothing,
                                             card_keepalive.address, card_keepalive.word, &how);
    if (!UCS_PTR_IS_PTR(request)) finish_card_keepalive_step(rail, UCS_PTR_STATUS(request));
    request = (*library_)->ucp_ep_flush_nbx(rail.endpoint, &how);
    if (!UCS_PTR_IS_PTR(request)) finish_card_keepalive_step(rail, UCS_PTR_STATUS(request));
    finish_card_keepalive_step(rail, UCS_OK);
}

void UcxTransport::on_keepalive(void* request, ucs_status_t status, void* arg) {
    RailTo& rail = *static_cast<RailTo*>(arg);
    UcxTransport& self = rail.peer->owner;
    (*self.library_)->ucp_request_free(request);
    self.finish_card_keepalive_step(rail, status);
}

void UcxTransport::finish_card_keepalive_step(RailTo& rail, ucs_status_t status) {
    RailTo::CardKeepalive& card_keepalive = rail.card_keepalive;
    if (status != UCS_OK && !std::exchange(card_keepalive.untrue, true)) note_broken(rail, status);
    if (--card_keepalive.steps > 0) return;
    if (std::exchange(card_keepalive.untrue, false)) return;
    card_keepalive.waits_since.reset();
    card_keepalive.answered = clock_.now();
}

// Something else of the rail has arrived; the card keepalive may wait behind more.
void UcxTransport::show_life(RailTo& rail) const {
    if (rail.card_keepalive.waits_since)
        rail.card_keepalive.waits_since = rail.card_keepalive.answered = clock_.now();
}

// With one rail.
void UcxTransport::card_keepalive_now_and_then() {
    if (++looks_at_keepalives_ % kTurns != 0) return;
    const Nanoseconds now = clock_.now();
    for (Peer* peer : connected_) {
        if (!peer->lost.ok() || peer->left || peer->broken || !peer->connected) continue;
        RailTo& rail = peer->rails.front();
        if (now - rail.last_keepalive >= config_.card_keepalive) send_keepalive(rail, now);
    }
}

}  // namespace gantry::transport::ucx
