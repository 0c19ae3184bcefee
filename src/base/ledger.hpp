// SPDX-License-Identifier: BSD-3-Clause
//
// What an engine writes down while it works, as plainly as possible: an entry of the small-message path is
// an increment. What others read of it is Counters (base/counters.hpp).
#pragma once

#include "base/units.hpp"

#include <array>
#include <cstdint>

namespace gantry {

// Messages one way.
struct Traffic {
    std::uint64_t messages = 0;
    Bytes bytes = 0;
    void add(Bytes of_message) {
        ++messages;
        bytes += of_message;
    }
    void add(const Traffic& more) {
        messages += more.messages;
        bytes += more.bytes;
    }
    void remove(const Traffic& part) {
        messages -= part.messages;
        bytes -= part.bytes;
    }
};

// Of one communicator.
struct BothWays {
    Traffic sent, received;
    void add(const BothWays& more) {
        sent.add(more.sent);
        received.add(more.received);
    }
};

struct Ledger {
    static constexpr std::size_t kWays = 6;  // values of plan::Protocol

    BothWays elsewhere;  // messages of no communicator's; the others each communicator counts
    Traffic sent_later;  // of all: those that had not left when their call ended
    std::array<Traffic, kWays> received{};  // of all, but for eager ones: those are the rest
    Bytes staged = 0;
};

// How many there are now, and the most since peaks began anew.
class Level {
  public:
    std::uint64_t now() const { return now_; }
    std::uint64_t peak() const { return peak_; }
    void up() {
        if (++now_ > peak_) peak_ = now_;
    }
    void down() { --now_; }
    void begin_anew() { peak_ = now_; }

  private:
    std::uint64_t now_ = 0, peak_ = 0;
};

}  // namespace gantry
