// SPDX-License-Identifier: BSD-3-Clause
//
// What the transport keeps of one peer: its endpoints, one per rail, what waits to be sent to it,
// and its keys as unpacked here.
#pragma once

#include "transport/ucx/ucx.hpp"

#include <deque>
#include <unordered_map>

namespace gantry::transport::ucx {

// A key of the peer on one rail; UCX wants it unpacked. Kept: over TCP all keys are equal, and a
// pool has one for the whole job.
struct UcxTransport::Unpacked {
    int rail = 0;
    std::vector<std::byte> packed;
    ucp_rkey_h key = nullptr;
    int users = 0;  // puts in flight
};

struct UcxTransport::Peer {
    Peer(UcxTransport& its_owner, int its_rank) : owner(its_owner), rank(its_rank) {}
    UcxTransport& owner;
    int rank;
    std::vector<ucp_ep_h> endpoints;  // by rail; empty until connected
    Status lost;
    bool left = false;        // it said goodbye
    bool broken = false;      // noted by the error handler
    std::deque<Frame*> full;  // packed, oldest first; all leave before `open`
    Frame* open = nullptr;    // being packed
    int in_flight = 0;        // frames that UCX holds
    int sent_at_once = 0;     // since the last progress()
    bool waits = false;       // is in waiting_
    std::vector<std::unique_ptr<Unpacked>> keys;
    std::unordered_map<std::uint64_t, Putting*> unanswered;  // puts by message, by ticket
    std::unordered_map<std::uint64_t, Bytes> arriving;       // of its puts: bytes still to come

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
// One put, until all its steps have ended: what it posted, and the flush or the peer's answer.
struct UcxTransport::Putting {
    UcxTransport* owner;
    Completion* done;
    Unpacked* key;  // null: by message
    int steps;
    ucs_status_t status;
    int peer;
    Bytes bytes;
    std::unique_ptr<PieceHead[]> heads{};  // UCX reads them until the pieces have left
};

// The answer: everything is in place, or that there was no place for it.
struct UcxTransport::PutAnswer {
    std::uint64_t ticket;
    std::uint64_t refused;
};

}  // namespace gantry::transport::ucx
