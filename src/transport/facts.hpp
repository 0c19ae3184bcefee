// SPDX-License-Identifier: BSD-3-Clause
//
// What the planner may know about the way to a peer: plain data.
#pragma once

#include "base/units.hpp"

namespace gantry::transport {

struct PeerFacts {
    bool self = false;
    bool shared_memory = false;  // the peer reads our staging slots in place (same node)
    bool put = false;            // rails can write into the peer's registered memory
    bool device_memory = false;  // rails reach device memory themselves (GPUDirect RDMA)
    int rails = 1;
    Bytes eager_max = 0;                // largest payload of one active message
    double bytes_per_second = 10e9;     // one rail, or one process copying through shared memory
    Nanoseconds message_latency = 500;  // an empty active message, one way
    Nanoseconds put_cost = 0;           // what each further put adds on the wire
    bool operator==(const PeerFacts&) const = default;
};

}  // namespace gantry::transport
