// SPDX-License-Identifier: BSD-3-Clause
#include "p2p/outgoing.hpp"

namespace gantry::p2p {

Outgoing& OutgoingTable::add(int to, std::uint64_t id) {
    auto message = memory_.create(executor_);
    message->id = id;
    message->peer = to;
    Outgoing& reference = *message;
    whole_.emplace(id, std::move(message));
    return reference;
}

Outgoing* OutgoingTable::find(std::uint64_t id) {
    auto found = whole_.find(id);
    if (found != whole_.end()) return found->second.get();
    Request* const request = awaiting_fin_.take(id);
    if (request == nullptr) return nullptr;
    Outgoing& message = add(request->peer, id);
    message.request = request;
    message.buffer = request->buffer;
    message.location = request->location;
    message.bytes = request->buffer.bytes();
    // Only what the receiver is expected to read awaits its FIN without more.
    message.offer.protocol = plan::Protocol::ipc;
    message.offer.executor = plan::Executor::receiver;
    return &message;
}

Outgoing* OutgoingTable::find(const Request& send) {
    if (const std::uint64_t awaiting = awaiting_fin_.id_of(send); awaiting != 0)
        return find(awaiting);
    for (auto& [id, message] : whole_)
        if (message->request == &send) return message.get();
    return nullptr;
}

void OutgoingTable::materialize(int to) {
    if (awaiting_fin_.empty()) return;
    for (const std::uint64_t id : awaiting_fin_.to(to))
        find(id);
}

}  // namespace gantry::p2p
