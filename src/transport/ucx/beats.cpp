// SPDX-License-Identifier: BSD-3-Clause
//
// Beats: whether a peer is there, over cards. What a pulse (pulse.hpp) is to a rail over TCP: a word put
// into one of the peer's, and a flush behind it. The peer's card acknowledges both, even while its
// program computes, and they take none of its receive buffers. Nobody reads the word.
//
//   us                                          the peer's card
//     | == 8 bytes into its word, flush ======> |
//     | <====== acknowledgement of the card === |
//
// With one rail a beat goes each GANTRY_CARD_BEAT: so whoever only waits learns that the peer is gone, by
// UCX's error handler. With several, rails.cpp beats as it does pulses, and judges who is silent.
#include "transport/ucx/peer.hpp"

#include "base/log.hpp"

namespace gantry::transport::ucx {
namespace {

// Turns of progress between looks at the clock. A turn takes tens of nanoseconds to some microseconds:
// so few are in time for any beat that makes sense, and the price of a look is not felt.
constexpr unsigned kTurns = 256;

}  // namespace

void UcxTransport::open_beat(RailTo& rail, const WireUpOf& known) {
    const WireUpOf::OfRail& there = known.rails[static_cast<std::size_t>(rail.index)];
    rail.beat.waits_since.reset();
    rail.beat.answered.reset();
    if (there.beat_key.empty() || rails_[static_cast<std::size_t>(rail.index)].only_messages())
        return;
    const ucs_status_t status =
        (*library_)->ucp_ep_rkey_unpack(rail.endpoint, there.beat_key.data(), &rail.beat.word);
    if (status == UCS_OK) {
        rail.beat.address = there.beat_word;
        return;
    }
    rail.beat.word = nullptr;
    log::info("ucx: no beats to rank {} by rail {}: {}", rail.peer->rank, rail.index,
              library_->text(status));
}

// Before its endpoint goes.
void UcxTransport::close_beat(RailTo& rail) {
    if (rail.beat.word != nullptr)
        (*library_)->ucp_rkey_destroy(std::exchange(rail.beat.word, nullptr));
    rail.beat.untrue = rail.beat.steps > 0;
    rail.beat.waits_since.reset();
    rail.beat.answered.reset();
}

void UcxTransport::beat(RailTo& rail, Nanoseconds now) {
    static constexpr std::uint64_t kNothing = 0;  // UCX reads it until it has left
    rail.last_beat = now;
    rail.pulse.beat(now);
    RailTo::Beat& beat = rail.beat;
    if (beat.word == nullptr || beat.steps > 0) return;
    beat.waits_since = now;
    beat.steps = 3;  // put, flush, and this call
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    how.cb.send = &UcxTransport::on_beat;
    how.user_data = &rail;
    void* request = (*library_)->ucp_put_nbx(rail.endpoint, &kNothing, sizeof kNothing,
                                             beat.address, beat.word, &how);
    if (!UCS_PTR_IS_PTR(request)) finish_beat_step(rail, UCS_PTR_STATUS(request));
    request = (*library_)->ucp_ep_flush_nbx(rail.endpoint, &how);
    if (!UCS_PTR_IS_PTR(request)) finish_beat_step(rail, UCS_PTR_STATUS(request));
    finish_beat_step(rail, UCS_OK);
}

void UcxTransport::on_beat(void* request, ucs_status_t status, void* arg) {
    RailTo& rail = *static_cast<RailTo*>(arg);
    UcxTransport& self = rail.peer->owner;
    (*self.library_)->ucp_request_free(request);
    self.finish_beat_step(rail, status);
}

void UcxTransport::finish_beat_step(RailTo& rail, ucs_status_t status) {
    RailTo::Beat& beat = rail.beat;
    if (status != UCS_OK && !std::exchange(beat.untrue, true)) note_broken(rail, status);
    if (--beat.steps > 0) return;
    if (std::exchange(beat.untrue, false)) return;
    beat.waits_since.reset();
    beat.answered = clock_.now();
}

// Something else of the rail has arrived; the beat may wait behind more.
void UcxTransport::show_life(RailTo& rail) const {
    if (rail.beat.waits_since) rail.beat.waits_since = rail.beat.answered = clock_.now();
}

// With one rail.
void UcxTransport::beat_now_and_then() {
    if (++looks_at_beats_ % kTurns != 0) return;
    const Nanoseconds now = clock_.now();
    for (Peer* peer : connected_) {
        if (!peer->lost.ok() || peer->left || peer->broken || !peer->connected) continue;
        RailTo& rail = peer->rails.front();
        if (now - rail.last_beat >= config_.card_beat) beat(rail, now);
    }
}

}  // namespace gantry::transport::ucx
