// SPDX-License-Identifier: BSD-3-Clause
//
// Channels: one-sided messages between this rank and each other one, in the order in which they were
// sent. Transports promise no order; accumulates need one, and what is counted must not come twice.
#pragma once

#include "rma/wire.hpp"
#include "transfer/context.hpp"

#include <cstring>
#include <map>
#include <memory>
#include <vector>

namespace gantry::rma {

class Channels {
  public:
    explicit Channels(transfer::Context& context) : context_(context) {}

    // Numbers the message and sends it.
    template <class Header>
    Status send(int to, wire::Kind kind, Header header, transport::ConstSpan payload = {}) {
        Channel& channel = with(to);
        transfer::Endpoint& peer = context_.endpoints.to(to);
        if (!peer.lost.ok()) return peer.lost;
        header.head.sequence = channel.next_to_send;
        Status sent = context_.send(peer, kind, header, payload);
        if (sent.ok()) ++channel.next_to_send;
        return sent;
    }

    // `take(kind, header, payload)` is called for a message whose turn it is, and for those that came
    // too early and follow it.
    template <class Take>
    void arrive(int from, wire::Kind kind, transport::ConstSpan header,
                transport::ConstSpan payload, const Take& take) {
        Channel& channel = with(from);
        wire::Head head;
        std::memcpy(&head, header.data(), sizeof head);
        const auto early = static_cast<std::int32_t>(head.sequence - channel.next_expected);
        if (early < 0) return;
        if (early > 0) {
            channel.parked.try_emplace(
                head.sequence,
                Parked{kind, {header.begin(), header.end()}, {payload.begin(), payload.end()}});
            return;
        }
        ++channel.next_expected;
        take(kind, header, payload);
        for (auto next = channel.parked.find(channel.next_expected); next != channel.parked.end();
             next = channel.parked.find(channel.next_expected)) {
            const Parked parked = std::move(next->second);
            channel.parked.erase(next);
            ++channel.next_expected;
            take(parked.kind, parked.header, parked.payload);
        }
    }

  private:
    struct Parked {
        wire::Kind kind;
        std::vector<std::byte> header, payload;
    };
    struct Channel {
        std::uint32_t next_to_send = 0, next_expected = 0;
        std::map<std::uint32_t, Parked> parked;  // by sequence
    };
    Channel& with(int rank) {
        const auto at = static_cast<std::size_t>(rank);
        if (at >= channels_.size()) channels_.resize(at + 1);
        if (channels_[at] == nullptr) channels_[at] = std::make_unique<Channel>();
        return *channels_[at];
    }

    transfer::Context& context_;
    std::vector<std::unique_ptr<Channel>> channels_;  // by world rank
};

}  // namespace gantry::rma
