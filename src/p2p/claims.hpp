// SPDX-License-Identifier: BSD-3-Clause
//
// Claims: who of the two ends executes a copy that either could make (DESIGN section 5, "Executing
// for each other"). The word lies in the sender's segment and is named in the RTS; whoever swaps
// it first copies, and nobody else. A word holds the message's tag with the claimant in its low
// bits, so that a late attempt never hits the word's next user.
//
//   sender    take()  -> tag|free     the RTS names the word
//   verdict "put"     -> sender swaps tag|free -> tag|sender before its first device call
//   claim_wait later  -> receiver swaps tag|free -> tag|receiver, and gets instead
//   end       give_back()
#pragma once

#include <cstdint>
#include <vector>

namespace gantry::p2p {

enum class Claimant : std::uint32_t { nobody = 0, sender = 1, receiver = 2 };

// Swaps the word of message `id`; false when somebody else has it, or it is another message's.
bool claim(std::uint32_t* word, std::uint64_t id, Claimant who);

// The words of one rank as their owner lends them to its messages.
class Claims {
  public:
    // One more than the word's index, or 0 when there is none to be had: no claim then, the
    // verdict alone decides.
    std::uint32_t take(std::uint32_t* words, std::uint64_t id);
    void give_back(std::uint32_t number);

  private:
    std::vector<std::uint32_t> free_;
    bool filled_ = false;
};

}  // namespace gantry::p2p
