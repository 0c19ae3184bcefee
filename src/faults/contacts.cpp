// SPDX-License-Identifier: BSD-3-Clause
#include "faults/contacts.hpp"

#include <utility>

namespace gantry::faults {

Contacts::Contacts(transfer::Context& context) : context_(context) {
    context_.messages.handle<&Contacts::on_message>(wire::kContact, *this);
}

void Contacts::make(std::span<const int> peers) {
    if (std::exchange(made_, true)) return;
    for (const int peer : peers) {
        transfer::Endpoint& endpoint = context_.endpoints.to(peer);
        if (peer == context_.world_rank || endpoint.transport == nullptr || !endpoint.lost.ok() ||
            endpoint.facts.shared_memory)
            continue;
        const wire::Contact contact{context_.world_rank};
        if (Status sent = context_.send(endpoint, wire::kContact, contact); !sent.ok())
            context_.messages.on_peer_lost(peer, sent);
    }
}

}  // namespace gantry::faults
