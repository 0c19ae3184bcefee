// SPDX-License-Identifier: BSD-3-Clause
//
// OneCopy: a message that is one copy between device memories and is done with no coroutine, read
// by its receiver (ipc_get.cpp) or put by its sender (put_after_rtr.cpp). It lives in a frame of
// the executor and ends by a function.
//
// A kind of it has `Status ended()`, called once when the copy has ended, well or not: tells the
// peer, gives the peer's memory back, and says how the request ends.
#pragma once

#include "p2p/messages.hpp"

namespace gantry::p2p {

struct OneCopy : Completion {
    OneCopy(Messages& in, int rank, std::uint64_t id, Request& of)
        : Completion(in.executor), messages(in), peer(rank), send_id(id), request(of) {}
    Messages& messages;
    const int peer;
    const std::uint64_t send_id;
    Request& request;
    device::Copy copy;
    Nanoseconds begin = 0;  // of the copy, where it is traced
};

template <class Kind>
void end_one_copy(Resumable& waiting) {
    Kind& each = static_cast<Kind&>(Completion::of(waiting));
    Messages& messages = each.messages;
    messages.context.moved(name(each.copy.engine), each.begin, each.copy.gpu, each.copy.bytes);
    messages.finish_request(each.request, each.ended());
    each.~Kind();
    messages.executor.free_frame(&each);
    messages.context.operations.end();
}

template <class Kind>
void start_one_copy(Kind& each) {
    each.then(end_one_copy<Kind>);
    each.begin = each.messages.context.begins();
    each.messages.device.copy(each.copy, each);
}

// Starts it, or lets the thread do so that progresses.
template <class Kind>
void run_one_copy(Kind& each) {
    each.messages.context.operations.begin();
    if (each.messages.executor.hands_over())
        each.yield_to([](Resumable& waiting) {
            start_one_copy(static_cast<Kind&>(Completion::of(waiting)));
        });
    else
        start_one_copy(each);
}

}  // namespace gantry::p2p
