// SPDX-License-Identifier: BSD-3-Clause
//
// What the transport keeps of one peer: its endpoints, one per rail, what waits to be sent to it,
// and the keys of its memory.
#pragma once

#include "transport/ucx/bulk.hpp"
#include "transport/ucx/frame_numbers.hpp"
#include "transport/ucx/tcp_keepalive.hpp"
#include "transport/ucx/remote_keys.hpp"
#include "transport/ucx/stream.hpp"
#include "transport/ucx/ucx.hpp"

#include <deque>
#include <optional>
#include <unordered_map>

namespace gantry::transport::ucx {

// Memory of ours that a message to a peer exposed.
struct UcxTransport::Exposure {
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

// One rail to a peer. With several rails it fails alone (rails.cpp):
//
//   up -- an error, or silence --> failing -- the peer closed its end --> down -- a way again --> trying --> up
struct UcxTransport::RailTo {
    enum class State : std::uint8_t { up, failing, down, trying };
    Peer* peer = nullptr;
    int index = 0;
    ucp_ep_h endpoint = nullptr;  // null until connected, and while it is down
    State state = State::up;
    bool broken = false;  // noted by the error handler
    bool may_carry() const { return state == State::up && !broken; }
    int puts = 0;                // that it carries, and those in `held`
    std::vector<Putting*> held;  // failed with the rail; until it is closed, their bytes may arrive
    std::uint32_t failures = 0;  // of ours, so far
    Nanoseconds next_try = 0;    // while it is down
    Nanoseconds pause = 0;       // between tries
    TcpKeepalive tcp_keepalive;
    Nanoseconds last_keepalive = 0;
    // What the TCP keepalive is to TCP, over a card (card_keepalive.cpp).
    struct CardKeepalive {
        ucp_rkey_h word = nullptr;  // of the peer; null: not connected, or no card
        std::uint64_t address = 0;
        int steps = 0;        // of the one under way
        bool untrue = false;  // its endpoint was closed meanwhile
        std::optional<Nanoseconds> waits_since, answered;
    };
    CardKeepalive card_keepalive;
    // How long the oldest TCP keepalive or card keepalive on its way has waited by now; 0: there is none.
    Nanoseconds silent(Nanoseconds now) const {
        return card_keepalive.waits_since ? now - *card_keepalive.waits_since
                                          : tcp_keepalive.silent(now);
    }
    std::optional<Nanoseconds> answered() const {
        return card_keepalive.answered ? card_keepalive.answered : tcp_keepalive.answered();
    }
    int frames = 0;  // that UCX holds
    // The peer closed it: it has left, gave the rail up, or lost us.
    std::optional<Nanoseconds> tcp_keepalive_ended;
    // --- the peer's end
    std::uint64_t void_below = 0;  // puts of the peer with smaller tickets come too late
    bool peer_is_back = false;     // the peer's way here works again, as far as the peer knows
    bool told_back = false;        // the peer knows that the card's port works here
    // The peer waits for this failure of its rail to be closed here.
    std::optional<std::uint32_t> owes;
};

struct UcxTransport::Peer {
    Peer(UcxTransport& its_owner, int its_rank, std::size_t its_rails)
        : owner(its_owner), rank(its_rank), rails(its_rails) {
        for (std::size_t rail = 0; rail < its_rails; ++rail) {
            rails[rail].peer = this;
            rails[rail].index = static_cast<int>(rail);
        }
    }
    UcxTransport& owner;
    int rank;
    std::vector<RailTo> rails;  // never moved: UCX has pointers into it
    bool connected = false;
    Status lost;
    bool left = false;           // it said goodbye
    bool broken = false;         // all of it is about to be lost
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
    struct Arriving {
        int rail;
        Bytes missing;
    };
    std::unordered_map<std::uint64_t, Arriving> arriving;  // its puts that have come in part
    // With several rails:
    std::uint32_t last_number = 0;  // of frames to it
    std::deque<Frame*> kept;        // frames that it has not acknowledged, oldest first
    FrameNumbers received;          // its frames
    Bytes kept_bytes = 0;           // of `kept`
    int unacknowledged = 0;         // of these, since it was last told; a large one counts as many
    bool owes_acknowledgement = false;  // is in owing_

    std::vector<std::unique_ptr<Bulk>> bulk;  // by rail; empty until the first large transfer
    std::unordered_map<std::uint64_t, Exposure> exposures;  // to it, by number
    std::unordered_map<std::uint64_t, Fetch> fetches;       // of what it exposed, likewise

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
// One put or get, until all its steps have ended: what it posted, and the flush or the peer's answer.
struct UcxTransport::Putting {
    enum class Kind : std::uint8_t { put, get };
    UcxTransport* owner;
    Completion* done;
    RemoteKeys::Key* key;  // null: by message
    int steps;
    ucs_status_t status;
    int peer;
    int rail;
    Bytes bytes;
    Kind kind = Kind::put;
    std::unique_ptr<PieceHead[]> heads{};  // UCX reads them until the pieces have left
};

// What the store says of a rank.
struct UcxTransport::WireUpOf {
    struct OfRail {
        std::string worker;              // its address, as UCX packs it
        std::string card_keepalive_key;  // empty: no card
        std::uint64_t card_keepalive_word;
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

// A rail that its sender gave up: nothing that the sender put by it before may arrive any more.
struct UcxTransport::RailDown {
    std::uint32_t rail;
    std::uint32_t failure;     // which one of that rail, at the sender
    std::uint64_t void_below;  // puts of the sender with smaller tickets
};
// The answer: nothing will.
struct UcxTransport::RailClosed {
    std::uint32_t rail;
    std::uint32_t failure;
};

// The answer: everything is in place, or that there was no place for it.
struct UcxTransport::PutAnswer {
    std::uint64_t ticket;
    std::uint64_t refused;
};

}  // namespace gantry::transport::ucx
