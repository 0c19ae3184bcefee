// SPDX-License-Identifier: BSD-3-Clause
#include "faults/revocations.hpp"

#include "p2p/wire.hpp"

#include <algorithm>
#include <utility>

namespace gantry::faults {

Revocations::Revocations(transfer::Context& context, p2p::Messenger& messenger, Revoked revoked)
    : context_(context), messenger_(messenger), revoked_(std::move(revoked)) {
    context_.messages.handle<&Revocations::on_message>(wire::kRevoke, *this);
    context_.messages.tell_of_losses<&Revocations::on_peer_lost>(*this);
}

void Revocations::revoke(std::uint32_t context, wire::RevokedBy by) {
    begin(p2p::base_context(context), by, -1);
}

bool Revocations::is_by_program(std::uint32_t context) const {
    return std::ranges::any_of(revocations_, [context](const Revocation& each) {
        return each.context == p2p::base_context(context) && each.by == wire::RevokedBy::program;
    });
}

void Revocations::on_message(int from, transport::ConstSpan header, transport::ConstSpan) {
    const auto told = p2p::wire::read<wire::Revoke>(header);
    begin(told.context, told.by, from);
}

// Told first of all: what ends here with an error may lead to calls that wait for the others.
void Revocations::begin(std::uint32_t context, wire::RevokedBy by, int heard_from) {
    // By itself a rank may have revoked it before: what its waits lead to is told to nobody then.
    for (const Revocation& each : revocations_)
        if (each.context == context) return;
    messenger_.revoke(context);
    revocations_.push_back({context, by, heard_from, revoked_(context)});
    Revocation& revocation = revocations_.back();
    if (heard_from < 0)
        tell_all(revocation);
    else
        tell_if_lost(revocation);
}

void Revocations::learn_members(std::uint32_t context, std::vector<int> peers) {
    for (Revocation& each : revocations_) {
        if (each.context != p2p::base_context(context)) continue;
        each.peers = std::move(peers);
        return tell_if_lost(each);
    }
}

void Revocations::on_peer_lost(int peer, const Status&) {
    for (Revocation& each : revocations_)
        if (each.heard_from == peer) tell_all(each);
}

void Revocations::tell_if_lost(Revocation& revocation) {
    if (revocation.heard_from >= 0 && !context_.endpoints.to(revocation.heard_from).lost.ok())
        tell_all(revocation);
}

void Revocations::tell_all(Revocation& revocation) {
    if (revocation.peers.empty()) return;
    revocation.heard_from = -1;
    for (const int peer : std::exchange(revocation.peers, {})) {
        transfer::Endpoint& endpoint = context_.endpoints.to(peer);
        if (peer != context_.world_rank && endpoint.lost.ok())
            static_cast<void>(context_.send(endpoint, wire::kRevoke,
                                            wire::Revoke{revocation.context, revocation.by}));
    }
}

}  // namespace gantry::faults
