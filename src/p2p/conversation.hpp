// SPDX-License-Identifier: BSD-3-Clause
//
// Conversation: what point-to-point keeps about one peer: the order of their envelopes, the eager bytes
// that it may still send, and what it has learnt from earlier messages. Made at the first message.
#pragma once

#include "p2p/destination_predictor.hpp"
#include "p2p/ready_to_receive.hpp"
#include "p2p/sequencer.hpp"
#include "transfer/endpoint.hpp"

#include <cstdint>
#include <vector>

namespace gantry::p2p {

struct Conversation {
    Conversation(transfer::Endpoint& with, Bytes limit)
        : endpoint(with), eager_limit(limit), plain_below(limit + 1) {}

    transfer::Endpoint& endpoint;
    const Bytes eager_limit;  // largest contiguous host message sent at once
    Bytes plain_below;  // smaller ones with their envelope alone; 0: it says more (signatures)
    Sequencer sequence;
    Bytes eager_outstanding = 0;        // sent eagerly and not yet reported as consumed
    Bytes eager_consumed = 0;           // received and not yet reported
    DestinationPredictor destinations;  // where our staged messages to it end
    ReadyToReceive rtr;

    // What the next RTS may repeat (rts_templates.cpp): the last one that said more than that, without
    // what is each message's own. Each template is a new version, from 1 up.
    wire::Rts rts_sent{}, rts_received{};
    std::uint64_t rts_version = 0;
    // The template of now. An RTS from an allocation that was freed since is never repeated.
    std::uint64_t rts_stamp() const { return rts_version << 32 | endpoint.memory.epoch(); }

    // The last message sent by flags: if its receiver sent a CTS, it copied the whole message, so
    // splitting the next one gains nothing.
    std::uint64_t last_id_by_flags = 0;
    bool last_was_answered = false;
    // So many large messages to come go by chunks: there were no slots for all of the last.
    int large_by_chunks = 0;
    unsigned read_by_bar = 0;  // messages sent so (bar_copies.hpp) since the peer said anything
    // Its messages that were read and that it has not been told of (messages.cpp, queue_fin).
    std::vector<std::uint64_t> fins;
};

}  // namespace gantry::p2p
