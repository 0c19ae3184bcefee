// SPDX-License-Identifier: BSD-3-Clause
//
// Access: one one-sided operation as a call of MPI describes it. Operation: one that did not end
// inside its call; it keeps copies of what the program may free, its datatypes.
#pragma once

#include "base/intrusive_list.hpp"
#include "rma/items.hpp"
#include "transfer/buffer.hpp"

namespace gantry::rma {

using transfer::Buffer;
using transfer::Side;

enum class Verb : std::uint8_t { put, get, accumulate, fetch, compare_and_swap };

inline bool reads(Verb verb) {
    return verb == Verb::get || verb == Verb::fetch || verb == Verb::compare_and_swap;
}
inline bool changes_items(Verb verb) {
    return verb == Verb::accumulate || verb == Verb::fetch || verb == Verb::compare_and_swap;
}

struct Access {
    Verb verb = Verb::put;
    int target = 0;                 // its rank in the window
    Side origin;                    // what is written, or the operand; of a get: where it goes
    Side result;                    // fetch, compare_and_swap
    Side compare;                   // compare_and_swap
    std::int64_t displacement = 0;  // in the target's units
    std::uint64_t count = 0;        // of target elements
    const layout::Layout* layout = nullptr;
    layout::Operation operation = layout::Operation::replace;
    Items items;
    Bytes bytes = 0;  // that move; no more than either end has
    // Who holds what is read in the end.
    const Side& sink() const { return verb == Verb::get ? origin : result; }
};

class Window;

struct Operation : Link<Operation> {
    Operation(Window& in, const Access& of) : window(&in), access(of) {
        own(access.origin, origin_layout);
        own(access.result, result_layout);
        own(access.compare, compare_layout);
        target_layout = *of.layout;
        access.layout = &target_layout;
    }
    Window* window;
    Access access;
    std::uint64_t address = 0;  // of the target, by its own count
    bool direct = false;        // the target's memory is reached here
    std::uint64_t id = 0;       // of those that wait for answers
    Bytes missing = 0;          // bytes of the answer that have not come
    int stores = 0;             // parts of the answer on their way to a device
    transport::Region into;     // where the target puts what is read, if it does
    bool being_sent = false;    // its task still sends parts of it
    Status status;
    Completion* done = nullptr;  // the program has a request for it

  private:
    static void own(Side& side, layout::Layout& copy) {
        if (side.buffer.layout == nullptr) return;
        copy = *side.buffer.layout;
        side.buffer.layout = &copy;
    }
    layout::Layout origin_layout, result_layout, compare_layout, target_layout;
};

}  // namespace gantry::rma
