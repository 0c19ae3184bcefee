// SPDX-License-Identifier: BSD-3-Clause
//
// What the parts of the sender's side share (send.cpp decides, send_puts.cpp is the put wire): the
// state of one outgoing rendezvous.
#pragma once

#include "p2p/protocols/stage.hpp"

#include <deque>
#include <memory>

namespace gantry::p2p {

// A piece that sits in one of our slots, or is being copied there.
struct Staged {
    explicit Staged(Executor& executor) : copied(executor) {}
    Slot slot;
    Bytes offset = 0;
    Bytes bytes = 0;
    Completion copied;
};

struct Sending {
    Core& core;
    Outgoing& message;
    Side side;
    plan::Plan plan;
    Bytes limit = 0;   // bytes to send: all, or what the receiver has room for
    Bytes offset = 0;  // next byte to stage
    std::deque<std::unique_ptr<Staged>> ahead;  // put wire: copied before the verdict
};

Bytes chunk_bytes(const Sending& sending, const SlotPool& pool, SlotUse use);
// `shared`: with the progress thread, where it has room (copies_shared).
void start_copy_out(Sending& sending, Staged& piece, bool shared = false);
// A piece that failed brings no slot back: whoever waits for one must hear of it.
void give_up(Sending& sending, const Status& why);

// Put wire: copies to slots that start before the verdict, until there are so many.
void stage_ahead(Executor& executor, Sending& sending, int pieces);
// Ahead copies that the verdict has no use for end before their slots go back.
Task<Status> drop_ahead(Executor& executor, Sending& sending, SlotPool& pool);
// All pieces, from slots or straight from the user's buffer, into the receiver's slots or memory.
Task<Status> send_puts(Executor& executor, Sending& sending);

}  // namespace gantry::p2p
