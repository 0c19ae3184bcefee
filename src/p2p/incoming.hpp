// SPDX-License-Identifier: BSD-3-Clause
//
// Incoming: a message as the receiver knows it, from its envelope on. It sits in the matcher's
// unexpected queues until a receive or a matched probe takes it; a rendezvous lives on until its
// last byte is in place.
#pragma once

#include "base/intrusive_list.hpp"
#include "base/mailbox.hpp"
#include "base/task.hpp"
#include "p2p/kept.hpp"
#include "p2p/request.hpp"
#include "p2p/wire.hpp"

#include <cstddef>
#include <memory>

namespace gantry::p2p {

struct BySource {};
struct ByArrival {};

struct UnexpectedMessage : Link<BySource>, Link<ByArrival> {
    explicit UnexpectedMessage(Executor& executor) : arrived(executor), finished(executor) {}

    wire::Envelope envelope{};
    int peer = -1;
    Request* request = nullptr;  // the receive that took it
    Status failure;              // the sender is gone before all of it came

    // --- eager ---
    Kept payload;                      // when nobody waited for it
    std::uint64_t synchronous_id = 0;  // send id to answer when matched; 0: none

    // --- rendezvous ---
    bool rendezvous = false;
    wire::RequestToSend rts{};
    Mailbox<wire::Chunk> arrived;  // pieces that lie in slots
    Completion finished;           // `finish` from the sender
    bool discard_chunks = false;   // the verdict does not use slots: arriving ones go straight back
};
using Incoming = UnexpectedMessage;

}  // namespace gantry::p2p
