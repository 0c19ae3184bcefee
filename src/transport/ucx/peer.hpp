// SPDX-License-Identifier: BSD-3-Clause
//
// What the transport keeps of one peer: its endpoints, one per rail, what waits to be sent to it,
// and its keys as unpacked here.
#pragma once

#include "transport/ucx/ucx.hpp"

#include <deque>

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

    bool nothing_queued() const { return open == nullptr && full.empty(); }
};

// One put: its own completion and the flush behind it, both end before `done` is told.
struct UcxTransport::Putting {
    UcxTransport* owner;
    Completion* done;
    Unpacked* key;
    int steps;
    ucs_status_t status;
    int peer;
    Bytes bytes;
};

}  // namespace gantry::transport::ucx
