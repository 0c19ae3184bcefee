// SPDX-License-Identifier: BSD-3-Clause
//
// Messages told by flags beside their slots (p2p/slot_flags.hpp), as their ends know them while
// they are under way. Neither end keeps a coroutine: each piece is one copy that ends by a
// function.
//
//   sender                                            receiver
//     copy of piece 0 to its slot
//     --- request to send [slot, number, chunk] -------->  plans and answers (receive.cpp), or
//     copies of the others                                 knows this one from the last: no answer
//     flag of each piece := number, by the copy engine
//     or at the copy's end                    ------->  copy out of the slot
//     <------------------------------ credit, slot by slot
//
// Whatever goes wrong ends both requests, when the copies in flight have ended.
#pragma once

#include "p2p/core.hpp"

#include <optional>

namespace gantry::p2p {

// This rank's flags, which devices reach if they can; the segment they lie in is there. Empty: what goes
// to that peer is told by messages.
std::span<Flag> own_flags(Core& core, int to);

// Whether a message of that buffer could flow: kernels copy by 16 bytes.
inline bool may_flow(const void* data, Bytes bytes) {
    return bytes > kFlowPiece && bytes <= device::kMostFlowing &&
           reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
}

struct FlaggedSend : Link<FlaggedSend> {
    struct Piece : Completion {
        explicit Piece(FlaggedSend& of);
        FlaggedSend& message;
        Slot slot;
    };
    FlaggedSend(Core& in, Request& of, const Peer::FlaggedOffer& offer);
    FlaggedSend(const FlaggedSend&) = delete;
    FlaggedSend& operator=(const FlaggedSend&) = delete;
    ~FlaggedSend();
    // With a copy for each piece behind it.
    static Bytes frame_bytes(int pieces) {
        return sizeof(FlaggedSend) + static_cast<Bytes>(pieces) * sizeof(Piece);
    }
    Piece& copy(int index) { return reinterpret_cast<Piece*>(this + 1)[index]; }

    Core& core;
    Request& request;  // knows the buffer, where it lies, and the peer
    SlotPool* slots = nullptr;
    Flag* flags = nullptr;  // of our slots
    FlaggedPieces pieces;
    std::uint32_t number = 0;
    device::Notice notice;
    bool flows = false;
    bool announced = false;        // the request to send has left
    int started = 0, running = 0;  // copies
    Status failure;
    const int copies;
};

struct FlaggedReceive : Link<FlaggedReceive> {
    // One copy, of a piece or of what has come of it; a frame of the executor's.
    struct Piece : Completion {
        Piece(FlaggedReceive& of, const wire::Chunk& in);
        FlaggedReceive& message;
        wire::Chunk chunk;
    };
    FlaggedReceive(Core& in, int rank, std::uint64_t id, Request& of, const Peer::Taken& like);

    Core& core;
    const int from;
    const std::uint64_t send_id;
    Request& request;
    const device::Engine engine;
    const device::Notice notice;
    const Bytes usual_piece;
    int awaited = 0, running = 0;  // flags, copies
    bool flows = false;
    std::optional<wire::Chunk> emptied;  // where it flows: all of it, which goes back in the end
    bool told = false;                   // the sender knows of the failure
    Status failure;
};

}  // namespace gantry::p2p
