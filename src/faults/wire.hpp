// SPDX-License-Identifier: BSD-3-Clause
//
// What ranks tell each other about failures. Both ends run the same build (checked at wire-up).
#pragma once

#include "transport/transport.hpp"

#include <cstdint>

namespace gantry::faults::wire {

inline constexpr transport::MessageKind kAgree = 96;
inline constexpr transport::MessageKind kRevoke = 97;
inline constexpr transport::MessageKind kContact = 98;

// What a message of an agreement says (agreement.hpp).
enum class Says : std::uint32_t {
    contribution,  // what its sender brings, or the proposal that it has taken
    proposal,      // of its coordinator, to be taken
    taken,         // the sender has taken it
    decision,      // everybody has
    question,  // nothing: its coordinator waits for whoever gets this, and learns so if that one is lost
};

// Followed by two sets of members as words of 64 bits, each with as many words as the group needs: who has
// failed, and whose failure is acknowledged.
struct Agree {
    std::uint32_t context;
    std::uint32_t sequence;
    Says says;
    std::int32_t epoch;  // which member proposed that; -1: it is no proposal
    std::uint32_t flags;
    std::uint32_t words;  // of each set
    std::uint64_t value;
};

enum class RevokedBy : std::uint32_t {
    program,
    death,  // the library: a rank of a file has died
};

struct Revoke {
    std::uint32_t context;
    RevokedBy by;
};

// Makes the connection by which each of the two notices that the other one has died (contacts.hpp). Nothing is
// to be done.
struct Contact {
    std::int32_t rank;  // of the sender in its job; for whoever reads a trace
};

}  // namespace gantry::faults::wire
