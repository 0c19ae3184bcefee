// SPDX-License-Identifier: BSD-3-Clause
//
// What the transport keeps of one peer: its endpoints, one per rail, what waits to be sent to it,
// and the keys of its memory.
#pragma once

#include "transport/ucx/bulk.hpp"
#include "transport/ucx/remote_keys.hpp"
#include "transport/ucx/stream.hpp"
#include "transport/ucx/ucx.hpp"

#include <deque>
#include <unordered_map>

namespace gantry::transport::ucx {

// Memory of ours that a message to a peer exposed.
struct UcxTransport::Loan {
    const void* source;
    Bytes bytes;
    Completion* done;
};
// Where what a peer exposed goes.
struct UcxTransport::Fetch {
    std::byte* sink;
    Bytes bytes;
    Completion* done;
};

struct UcxTransport::Peer {
    Peer(UcxTransport& its_owner, int its_rank) : owner(its_owner), rank(its_rank) {}
    UcxTransport& owner;
    int rank;
    std::vector<ucp_ep_h> endpoints;  // by rail; empty until connected
    Status lost;
    bool left = false;           // it said goodbye
    bool broken = false;         // noted by the error handler
    std::deque<Frame*> full;     // packed, oldest first; all leave before `open`
    Frame* open = nullptr;       // being packed
    int in_flight = 0;           // frames that UCX or the lane holds
    int sent_at_once = 0;        // since the last progress()
    int sent_alone = 0;          // messages, until a lane is opened for them
    Bulk* lane = nullptr;        // the stream that frames to it take
    std::unique_ptr<Bulk> back;  // by the connection that it opened to us
    bool waits = false;          // is in waiting_
    RemoteKeys keys;
    std::unordered_map<std::uint64_t, Putting*> unanswered;  // puts by message, by ticket
    std::unordered_map<std::uint64_t, Bytes> arriving;       // of its puts: bytes still to come

    std::vector<std::unique_ptr<Bulk>> bulk;        // by rail; empty until the first large transfer
    std::unordered_map<std::uint64_t, Loan> loans;  // to it, by number
    std::unordered_map<std::uint64_t, Fetch> fetches;  // of what it exposed, likewise

    bool nothing_queued() const { return open == nullptr && full.empty(); }
};

// Before each piece of a put by message (docs/wire.md section 4).
struct UcxTransport::PieceHead {
    std::uint32_t magic;
    std::uint32_t from;
    std::uint64_t ticket;  // of the whole put, at its sender
    std::uint64_t region;
    std::uint64_t offset;  // of this piece in the region
    std::uint64_t whole;   // bytes of the whole put
};
// One put or atomic operation, until all its steps have ended: what it posted, and the flush or the
// peer's answer.
struct UcxTransport::Putting {
    UcxTransport* owner;
    Completion* done;
    RemoteKeys::Key* key;  // null: by message
    int steps;
    ucs_status_t status;
    int peer;
    Bytes bytes;
    std::unique_ptr<PieceHead[]> heads{};  // UCX reads them until the pieces have left
    std::uint64_t operand = 0;             // of an atomic operation: likewise
    std::uint64_t* old = nullptr;          // where its result goes; null: it is a put
};

// What the store says of a rank.
struct UcxTransport::WireUpOf {
    struct OfRail {
        std::string worker;  // its address, as UCX packs it
        BulkAddress bulk;
    };
    std::uint64_t cookie;
    std::vector<OfRail> rails;
};

// A second connection to the peer, which we opened for large transfers or many messages to it.
// Another peer's is in accepted_.
struct UcxTransport::Bulk {
    enum class State : std::uint8_t { asked, open, refused };
    Peer* peer;
    int rail;
    State state;
    OutStream stream;
};
struct UcxTransport::Accepted final : StreamSink {
    Accepted(UcxTransport& its_owner, Socket socket, Nanoseconds end)
        : owner(its_owner), stream(std::move(socket), its_owner.frames_.largest()), until(end) {}
    static constexpr std::uint32_t kNoRail = ~0u;  // of a lane's way back: transfers never take it
    std::byte* place(const StreamHead& head) override;
    void arrived(const StreamHead& head, bool dropped) override;
    void frame(ConstSpan bytes) override;
    UcxTransport& owner;
    InStream stream;
    Nanoseconds until;  // to say who it is
    Hello hello{};
    int from = -1;            // -1 until then
    int expected = 0;         // exposed memory that was asked for and has not come
    bool watched = false;     // by epoll
    bool back_unused = true;  // nothing has come by it yet
    bool untrue = false;      // the next frame tells of a put that was dropped
};

// The answer: everything is in place, or that there was no place for it.
struct UcxTransport::PutAnswer {
    std::uint64_t ticket;
    std::uint64_t refused;
    std::uint64_t old;  // the word before an atomic operation
};

// An atomic operation by message.
struct UcxTransport::AtomicHead {
    std::uint64_t ticket;
    std::uint64_t region;
    std::uint64_t offset;
    std::uint64_t operand, compare;
    std::uint32_t operation;  // AtomicOperation
    std::uint32_t width;
};

}  // namespace gantry::transport::ucx
