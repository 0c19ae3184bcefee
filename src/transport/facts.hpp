// SPDX-License-Identifier: BSD-3-Clause
//
// What the planner may know about the way to a peer, and what a transport counts: plain data.
#pragma once

#include "base/units.hpp"

namespace gantry::transport {

struct PeerFacts {
    bool self = false;
    bool shared_memory = false;  // the peer reads our staging slots in place (same node)
    bool put = false;            // rails can write into the peer's registered memory
    bool unattended = false;     // and need no call of the peer's for it
    bool get = false;            // a rail reads the peer's registered memory, and needs none either
    bool device_memory = false;  // rails reach device memory themselves (GPUDirect RDMA)
    // What a rail reads out of device memory and writes into it; 0: as fast as the rail.
    double device_read_bytes_per_second = 0;
    double device_write_bytes_per_second = 0;
    bool registers_sources = false;  // a card reads what a put sends: worth registering, too
    int rails = 1;
    int home_rail = 0;              // of messages and small puts: the nearest one
    Bytes eager_max = 0;            // largest payload of one active message
    Bytes eager_limit = 32 * kKiB;  // largest one sent at once unless GANTRY_EAGER_LIMIT is set
    Bytes rdma_from = 0;  // puts of at least so much ask first and are not copied on the way
    Bytes exposes_from =
        0;  // messages of at least so much may expose their buffer (Transport::expose); 0: none
    // One rail, the mean where they differ, so that all together are `rails` times as fast; or one
    // process copying through shared memory.
    double bytes_per_second = 10e9;
    Nanoseconds message_latency = 500;  // an empty active message, one way
    Nanoseconds put_cost = 0;           // what each further put adds on the wire
    bool operator==(const PeerFacts&) const = default;
};

// Since the start, except `live`: what is registered now.
struct RegistrationCounts {
    std::uint64_t registered = 0;   // with the network, all rails together one
    std::uint64_t reused = 0;       // found registered
    std::uint64_t evicted = 0;      // to keep the bounds
    std::uint64_t invalidated = 0;  // their memory was unmapped or freed
    std::uint64_t refused = 0;
    std::uint64_t live = 0;
    Bytes live_bytes = 0;
    bool operator==(const RegistrationCounts&) const = default;
};
// Keys of peers, as unpacked here.
struct KeyCounts {
    std::uint64_t unpacked = 0, reused = 0, evicted = 0;
    bool operator==(const KeyCounts&) const = default;
};
struct Stats {
    RegistrationCounts registrations;
    KeyCounts keys;
};

}  // namespace gantry::transport
