// SPDX-License-Identifier: BSD-3-Clause
//
// Revocations: a communicator that one rank revokes is revoked on all that live, also when that rank dies in
// the middle of telling them. Whoever revokes tells all members. Whoever hears of it and then of the loss of
// the rank that told it, tells all members once more.
#pragma once

#include "faults/wire.hpp"
#include "p2p/messenger.hpp"
#include "transfer/context.hpp"

#include <functional>
#include <vector>

namespace gantry::faults {

class Revocations {
  public:
    // Both outlive this. `revoked` is called once for each context, by whoever revokes and by those who hear of
    // it, and gives the members of its communicator; none: it is not made here yet (learn_members).
    using Revoked = std::function<std::vector<int>(std::uint32_t context)>;
    Revocations(transfer::Context& context, p2p::Messenger& messenger, Revoked revoked);
    Revocations(const Revocations&) = delete;
    Revocations& operator=(const Revocations&) = delete;

    void revoke(std::uint32_t context, wire::RevokedBy by = wire::RevokedBy::program);
    // Whether the program has revoked it, here or elsewhere, as far as this rank has heard.
    bool is_by_program(std::uint32_t context) const;
    // That communicator is made now, and was revoked before.
    void learn_members(std::uint32_t context, std::vector<int> peers);

  private:
    struct Revocation {
        std::uint32_t context;
        wire::RevokedBy by;
        int heard_from;          // the peer; -1: this rank has told all
        std::vector<int> peers;  // whom to tell
    };
    void on_message(int from, transport::ConstSpan header, transport::ConstSpan payload);
    void on_peer_lost(int peer, const Status& why);
    void begin(std::uint32_t context, wire::RevokedBy by, int heard_from);
    void tell_if_lost(Revocation& revocation);
    void tell_all(Revocation& revocation);

    transfer::Context& context_;
    p2p::Messenger& messenger_;
    const Revoked revoked_;
    std::vector<Revocation> revocations_;
};

}  // namespace gantry::faults
