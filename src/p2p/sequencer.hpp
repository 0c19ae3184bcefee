// SPDX-License-Identifier: BSD-3-Clause
//
// Sequencer: the order of one conversation. Every envelope (eager header or RTS) carries a 32-bit
// sequence number of its sender. Envelopes are taken in that sequence: early ones are parked, repeats
// dropped, so transports need not order or deduplicate across rails. What follows an RTS under the
// message's id is parked until the RTS has been taken.
#pragma once

#include "p2p/wire.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace gantry::p2p {

class Sequencer {
  public:
    // A message that came too early, with copies of its parts.
    struct Parked {
        transport::MessageKind kind;
        std::vector<std::byte> header, payload;
    };

    // --- as the sender ---
    std::uint32_t next_to_send() const { return next_to_send_; }
    std::uint32_t take_number() { return next_to_send_++; }
    // The newest envelope could not leave: the next one takes its number, or the peer would wait for
    // that number for ever.
    void roll_back() { --next_to_send_; }

    // --- as the receiver ---
    std::uint32_t next_expected() const { return next_expected_; }
    // An envelope came. `take(kind, header, payload)` is called for it, if it is its turn, and for all
    // parked ones that follow.
    template <class Take>
    void arrive(transport::MessageKind kind, transport::ConstSpan header,
                transport::ConstSpan payload, const Take& take) {
        wire::Envelope envelope;
        std::memcpy(&envelope, header.data(), sizeof envelope);
        const auto distance = static_cast<std::int32_t>(envelope.sequence - next_expected_);
        if (distance < 0) return;
        if (distance > 0) return park(envelope.sequence, kind, header, payload);
        ++next_expected_;
        take(kind, header, payload);
        if (parked_.empty()) [[likely]]
            return;
        for (auto next = parked_.find(next_expected_); next != parked_.end();
             next = parked_.find(next_expected_)) {
            const Parked early = std::move(next->second);
            parked_.erase(next);
            ++next_expected_;
            take(early.kind, early.header, early.payload);
        }
    }
    // The RTS (or synchronous eager message) of that id has been taken; the ids of one sender only grow,
    // those of announced messages and the others each by themselves.
    void rts_taken(std::uint64_t send_id) { last_taken(send_id) = send_id; }
    // A part of that message came. True: its RTS has not been taken yet, and the part is parked.
    bool park_follower(std::uint64_t send_id, transport::MessageKind kind,
                       transport::ConstSpan header, transport::ConstSpan payload);
    // The parked parts of that message, removed.
    std::vector<Parked> take_followers(std::uint64_t send_id);

  private:
    void park(std::uint32_t sequence, transport::MessageKind kind, transport::ConstSpan header,
              transport::ConstSpan payload);
    std::uint64_t& last_taken(std::uint64_t send_id) {
        return wire::is_announced(send_id) ? last_announced_ : last_rts_;
    }

    std::uint32_t next_to_send_ = 0, next_expected_ = 0;
    std::uint64_t last_rts_ = 0, last_announced_ = wire::kAnnounced;
    std::map<std::uint32_t, Parked> parked_;                  // by sequence
    std::map<std::uint64_t, std::vector<Parked>> followers_;  // by message id
};

}  // namespace gantry::p2p
