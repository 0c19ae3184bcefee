// SPDX-License-Identifier: BSD-3-Clause
//
// Claims: which end of a message copies when both could. The receiver has told the sender to put, and could get: if the sender does not begin in
// time (its program computes), the receiver copies itself. Each such message has a word in its
// sender's segment; who copies takes it before its first device call, and only who has it copies.
//
//   word:  | id, its low 30 bits | 0 free, 1 sender, 2 receiver |
//
// The word of a message is the one at its id modulo their number, and its own until the sender is
// done with it. A later message may have it by then: it holds another id, and a claim of the old
// message fails, as it must.
#pragma once

#include "transport/transport.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace gantry::transfer {

using transport::kClaimWords;
enum class Claimant : std::uint32_t { nobody = 0, sender = 1, receiver = 2 };

// One word, by any number of processes at once.
void name_claim(std::uint32_t& word, std::uint64_t id);
// True: `who` copies. Asking again gives the same answer.
bool take_claim(std::uint32_t& word, std::uint64_t id, Claimant who);

// Which words of this rank are in use.
class ClaimWords {
  public:
    // False: the word is another message's; this one goes without.
    bool reserve(std::uint64_t id);
    void release(std::uint64_t id) { used_[id % kClaimWords] = false; }

  private:
    std::array<bool, kClaimWords> used_{};
};

// Messages whose sender has been told to put, until they are old enough to be claimed.
class ClaimClock {
  public:
    struct Waiting {
        int from;
        std::uint64_t id;
        Nanoseconds until;
    };
    bool empty() const { return waiting_.empty(); }
    void wait(int from, std::uint64_t id, Nanoseconds until);
    // One whose time has come, taken out; nothing when there is none.
    std::optional<Waiting> next(Nanoseconds now);

  private:
    std::vector<Waiting> waiting_;
};

}  // namespace gantry::transfer
