// SPDX-License-Identifier: BSD-3-Clause
//
// HostReads: whether large host messages inside a node are better read out of the sender's memory by the
// receiver (Transport::read_memory) than copied through slots. Both are measured where they happen, on the
// program's own messages: first a few copies out of slots, which every receiver makes anyway, then a few
// reads. The best of each counts, so a process that was interrupted meanwhile does no harm.
//
//     unmeasured --(kSamples copies out of slots)--> trial --(kSamples reads)--> measured
//
// What a rank has measured lies in the node's segment, where all ranks of the node see it: senders offer
// what receivers have measured.
#pragma once

#include "base/executor.hpp"
#include "plan/plan.hpp"
#include "transfer/endpoint.hpp"

namespace gantry::transfer {

class HostReads {
  public:
    // Smaller pieces measure a call more than a copy.
    static constexpr Bytes kSample = 16 * kKiB;
    static constexpr int kSamples = 8;

    explicit HostReads(bool enabled) : enabled_(enabled) {}

    // What is known of it between this rank and that peer; PeerFacts of the endpoint takes over what was
    // measured.
    plan::Reads state(Endpoint& peer);
    // Whether a copy of so many bytes out of a slot of that peer is to be timed.
    bool times_slots(Endpoint& peer, Bytes bytes) {
        return enabled_ && !slots_.done() && bytes >= kSample &&
               state(peer) == plan::Reads::unmeasured;
    }
    void copied_from_slot(Endpoint& peer, Bytes bytes, Nanoseconds time);
    // What the smallest read took, and a piece.
    void tried_call(Nanoseconds time);
    void read(Endpoint& peer, Bytes bytes, Nanoseconds time);

  private:
    struct Best {
        int samples = 0;
        double bytes_per_second = 0;
        bool done() const { return samples >= kSamples; }
        void add(Bytes bytes, Nanoseconds time);
    };
    const bool enabled_;
    Best slots_, reads_;
    Nanoseconds call_ = 0;
};

}  // namespace gantry::transfer
