// SPDX-License-Identifier: BSD-3-Clause
//
// RailScheduler: carries puts over the rails of a peer. It divides a put among rails
// (transfer/rail_shares.hpp), and what a rail had not delivered when it failed goes again over the
// others. A put may arrive twice without harm: its bytes go to the same place, and the transport
// reports the loss of a rail only when nothing that this rail still carries can arrive any more.
//
//   put --> divide --> part on rail 0 --> arrived
//                  \-> part on rail 1 --> rail lost --> the same part on rail 0 --> arrived
//
// No caller names a rail. Order between puts is not kept; a put has ended when its bytes are at the
// peer, so whoever needs an order waits for the end.
#pragma once

#include "base/config.hpp"
#include "transfer/endpoint.hpp"
#include "transfer/rail_shares.hpp"

#include <string>
#include <string_view>

namespace gantry::transfer {

// Bytes for a peer's registered memory. Everything that is pointed to outlives the put.
struct Put {
    const std::byte* source = nullptr;
    Bytes bytes = 0;
    transport::Region from;  // where `source` is registered; id 0: it is not
    const transport::RemoteKey* key = nullptr;
    Bytes offset = 0;  // in the peer's region
    int most_rails = kMostRails;
};

class RailScheduler {
  public:
    explicit RailScheduler(const config::Config& config);

    // Whether puts to that peer are divided here. A peer with one rail takes transport::put itself.
    static bool serves(const Endpoint& peer) { return peer.rails != nullptr; }
    // Ends when the bytes are at the peer, or with an error when no rail is left.
    Task<Status> put(Executor& executor, Endpoint& peer, Put put);

    // Parts that went again, because their rail failed.
    std::uint64_t repeats() const { return repeats_; }
    // A sentence for people about the rails to one peer, whose names (GANTRY_RAILS) may be missing.
    static std::string sentence(const Endpoint& peer, std::string_view names);

  private:
    Task<Status> carry(Executor& executor, Endpoint& peer, Put put, Stripe stripe);

    RailRules rules_;
    std::uint64_t repeats_ = 0;
};

}  // namespace gantry::transfer
