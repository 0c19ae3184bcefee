// SPDX-License-Identifier: BSD-3-Clause
//
// HostReads: whether large host messages inside a node are better read out of the sender's memory by the
// receiver (Transport::read_memory) than copied through slots. Both are measured where they happen, on the
// program's own messages, by the receiver, and for as long as the program runs: the best of the last
// kSamples of each counts, so a process that was interrupted meanwhile does no harm, and a machine whose
// state has changed is noticed after so many.
//
//     unmeasured --(kSamples messages through slots)--> trial --(kSamples reads)--> measured
//
// What a rank has measured it says in a word of the node's segment (SharedSegment::host_rates): senders
// offer what their receiver has measured. The way that is not taken is measured by looks (plan/looks.hpp).
//
//     word   | 0 | call | reads | slots |   steps of 8 bits (plan/rate_step.hpp); 0: not measured yet
#pragma once

#include "base/executor.hpp"
#include "plan/plan.hpp"
#include "transfer/endpoint.hpp"

#include <array>

namespace gantry::transfer {

class HostReads {
  public:
    // Smaller pieces measure a call more than a copy.
    static constexpr Bytes kSample = 16 * kKiB;
    static constexpr std::size_t kSamples = 8;

    HostReads(bool enabled, const Clock& clock) : enabled_(enabled), clock_(&clock) {}

    struct Known {
        plan::Reads reads = plan::Reads::refused;
        plan::HostRates rates;
    };
    // Of messages to that peer, as it has measured; of messages from there, as this rank has.
    Known to(Endpoint& peer) { return known(peer, peer.shared); }
    Known from(Endpoint& peer) { return known(peer, peer.own_shared); }

    // Before the first copy, of so many bytes, out of a slot of that peer; 0: it is not timed.
    Nanoseconds begins(Endpoint& peer, Bytes bytes) {
        return bytes >= kSample && enabled_ && from(peer).reads != plan::Reads::refused
                   ? clock_->now()
                   : 0;
    }
    // All so many bytes of a message are out of slots. Waits for a peer that fills them slowly count.
    void copied_from_slot(Endpoint& peer, Bytes bytes, Nanoseconds began);
    // What a read of a few bytes took, and a piece.
    void tried_call(Nanoseconds time) { calls_.add(static_cast<double>(time)); }
    void read(Endpoint& peer, Bytes bytes, Nanoseconds time);

    // Of messages through slots: tests have a clock that says what they are to take.
    void time_slots_by(const Clock& clock) { clock_ = &clock; }

  private:
    // The last kSamples values.
    class Window {
      public:
        void add(double value) { values_[added_++ % kSamples] = value; }
        bool empty() const { return added_ == 0; }
        bool full() const { return added_ >= kSamples; }
        double most() const;
        double least() const;

      private:
        std::array<double, kSamples> values_{};
        std::size_t added_ = 0;
    };
    Known known(Endpoint& peer, transport::SharedSegment* measured_by);
    void say(Endpoint& peer);

    const bool enabled_;
    const Clock* clock_;
    Window slots_, reads_, calls_;
};

}  // namespace gantry::transfer
