// SPDX-License-Identifier: BSD-3-Clause
//
// ShortCopy: a message that is one copy between device memories and is done with no coroutine, read
// by its receiver (get_again.cpp) or put by its sender (put_announced.cpp). It lives in a frame of
// the executor and ends by a function.
//
// A kind of it has `Status ended()`, called once when the copy has ended, well or not: tells the
// peer, gives the peer's memory back, and says how the request ends.
#pragma once

#include "p2p/core.hpp"

namespace gantry::p2p {

struct ShortCopy : Completion {
    ShortCopy(Core& in, int rank, std::uint64_t id, Request& of)
        : Completion(in.executor), core(in), peer(rank), send_id(id), request(of) {}
    Core& core;
    const int peer;
    const std::uint64_t send_id;
    Request& request;
    device::Copy copy;
};

template <class Kind>
void end_short_copy(Resumable& waiting) {
    Kind& each = static_cast<Kind&>(Completion::of(waiting));
    Core& core = each.core;
    core.finish_request(each.request, each.ended());
    each.~Kind();
    core.executor.free_frame(&each);
    core.operations.end();
}

template <class Kind>
void start_short_copy(Kind& each) {
    each.then(end_short_copy<Kind>);
    each.core.device.copy(each.copy, each);
}

// Starts it, or lets the thread do so that progresses.
template <class Kind>
void run_short_copy(Kind& each) {
    each.core.operations.begin();
    if (each.core.executor.hands_over())
        each.yield_to([](Resumable& waiting) {
            start_short_copy(static_cast<Kind&>(Completion::of(waiting)));
        });
    else
        start_short_copy(each);
}

}  // namespace gantry::p2p
