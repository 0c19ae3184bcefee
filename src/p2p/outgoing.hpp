// SPDX-License-Identifier: BSD-3-Clause
//
// Outgoing: a message as its sender knows it, while something of it is still to be done: a
// rendezvous until its last byte has left the user's buffer, a synchronous eager message until it
// is matched.
#pragma once

#include "base/mailbox.hpp"
#include "base/task.hpp"
#include "p2p/request.hpp"
#include "p2p/slots.hpp"
#include "p2p/wire.hpp"

#include <memory>

namespace gantry::p2p {

struct Outgoing {
    explicit Outgoing(Executor& executor)
        : answers(executor), finished(executor), grants(executor), fetched(executor) {}

    std::uint64_t id = 0;
    bool running = false;  // its coroutine is; else nothing is to be done before an answer comes
    int peer = -1;
    Request* request = nullptr;
    Buffer buffer;
    device::Location location;
    Bytes bytes = 0;
    plan::Question question;
    plan::Facts facts;
    plan::Choice choice;  // the offer, then the verdict as this side sees it
    bool busy = false;    // this process had device work pending when the offer was made

    Mailbox<wire::ClearToSend>
        answers;               // the verdict; a second one when the first could not be carried out
    wire::ClearToSend cts{};   // the verdict in force
    transport::RemoteKey key;  // of the memory that it names
    transport::Region source;  // put wire: the buffer's registration, until the message ends
    Completion finished;       // the receiver copied, or matched (synchronous eager), or gave up
    bool claimable = false;    // it has a claim word
    bool lent = false;         // the buffer is, to the receiver's transport
    Mailbox<std::uint32_t> grants;  // put wire: units of the receiver's slots that we may put into;
                                    // shared wire: our slots that came back
    Completion fetched;  // the end of the loan; MPI_ERR_PENDING: the receiver wants it another way
};

}  // namespace gantry::p2p
