// SPDX-License-Identifier: BSD-3-Clause
//
// Messages whose arrival is notified by flags beside slots (transfer/notify_flags.hpp), as their ends
// know them while they are under way. Neither end keeps a coroutine: each piece is one copy that ends by
// a function.
//
//   sender                                            receiver
//     copy of piece 0 to its slot
//     --- RTS [slot, number, chunk] -------------------->  answers and drains (pipeline_sink.cpp), or
//     copies of the others                                 needs no answer (receive_by_flags.cpp)
//     flag of each piece := number, by the copy engine
//     or at the copy's end                    ------->  copy out of the slot
//     <------------------------------ credit, slot by slot
//
// Whatever goes wrong ends both requests, when the copies in flight have ended.
#pragma once

#include "p2p/messages.hpp"
#include "p2p/offer.hpp"
#include "transfer/staging_copy.hpp"

#include <optional>

namespace gantry::p2p {

using transfer::Flag;
using transfer::FlagPieces;

// Whether a message of that buffer may cut through its slots: kernels copy by 16 bytes.
inline bool may_cut_through(const Messages& messages, const void* data, Bytes bytes) {
    return messages.context.tuning.mechanisms.cut_through && bytes > transfer::kCutThroughPiece &&
           bytes <= device::kMostCutThrough && reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
}

struct SendByFlags : Link<SendByFlags> {
    struct Piece : Completion {
        explicit Piece(SendByFlags& of);
        SendByFlags& message;
        Slot slot;
        Bytes bytes = 0;
        Nanoseconds begin = 0;  // where it is traced
    };
    SendByFlags(Messages& in, Request& of, const plan::Plan& offer);
    SendByFlags(const SendByFlags&) = delete;
    SendByFlags& operator=(const SendByFlags&) = delete;
    ~SendByFlags();
    // With a copy for each piece behind it.
    static Bytes frame_bytes(int pieces) {
        return sizeof(SendByFlags) + static_cast<Bytes>(pieces) * sizeof(Piece);
    }
    Piece& copy(int index) { return reinterpret_cast<Piece*>(this + 1)[index]; }

    Messages& messages;
    Request& request;  // knows the buffer, where it lies, and the peer
    SlotPool* slots = nullptr;
    Flag* flags = nullptr;  // of our slots
    FlagPieces pieces;
    std::uint32_t number = 0;
    const transfer::Staging staging;
    bool cuts_through = false;
    bool rts_left = false;
    int started = 0, running = 0;  // copies
    Status failure;
    const int copies;
};

struct ReceiveByFlags : Link<ReceiveByFlags>, transfer::FlagWaiter {
    // One copy, of a piece or of what has come of it; a frame of the executor's.
    struct Piece : Completion {
        Piece(ReceiveByFlags& of, const wire::Chunk& in);
        ReceiveByFlags& message;
        wire::Chunk chunk;
        Nanoseconds begin = 0;  // where it is traced
    };
    ReceiveByFlags(Messages& in, const Asked& asked, const plan::Plan& plan, Request& of);

    Messages& messages;
    const int from;
    const std::uint64_t send_id;
    Request& request;
    const transfer::Staging staging;
    const Bytes usual_piece;
    int awaited = 0, running = 0;  // flags, copies
    bool cuts_through = false;
    std::optional<wire::Chunk> emptied;  // what cuts through: all of it, which goes back in the end
    bool told = false;                   // the sender knows of the failure
    Status failure;
};

// --- at the sender ---
// Sends the message so, if its pieces can be notified by flags and there are slots for all of them.
bool send_by_flags(Messages& messages, const Departure& departure, plan::Selection& offer,
                   const Group& group, int tag, Request& request);
// The request of one under way; null: there is none.
const Request* send_by_flags_of(Messages& messages, std::uint64_t id);
// Its receiver gave up. False: there is none.
bool fail_send_by_flags(Messages& messages, std::uint64_t id, const Status& why);

// --- at the receiver ---
// The flags of that message are chunks, for a coroutine. A failure, of which its sender was told: it has
// no such flags.
Status await_flags(Messages& messages, int from, const wire::Rts& rts);
// Whether a message of that answer goes on without a word of the receiver's.
bool needs_no_answer(const Messages& messages, const Asked& asked,
                     const plan::Selection& selection);
// Takes such a message; false: its flags cannot be, and nothing has happened. `late`: its flags are awaited
// as chunks, none of which has been told.
bool receive_by_flags(Messages& messages, const Asked& asked, const plan::Selection& selection,
                      Request& receive, bool late);
// What lies in a slot whose flag is up.
void take_raised(const transfer::AwaitedFlags::Raised& raised);
// Nothing more comes for that message, or (no id) for any from that rank.
void fail_receives_by_flags(Messages& messages, int from, std::optional<std::uint64_t> id,
                            const Status& why);

}  // namespace gantry::p2p
