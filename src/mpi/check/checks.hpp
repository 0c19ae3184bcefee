// SPDX-License-Identifier: BSD-3-Clause
//
// What GANTRY_CHECK=1 adds: faults of a program that cost time to find, or that most libraries
// tolerate, are told.
#pragma once

#include "base/status.hpp"
#include "p2p/request.hpp"
#include "p2p/signatures.hpp"

#include <map>

namespace gantry::mpi {

struct Datatype;
struct Op;

class Checks : public p2p::Signatures {
  public:
    explicit Checks(bool on) : on_(on) {}
    bool on() const { return on_; }
    // Ranks that disagree would wait for each other: all do what rank 0 does.
    void turn(bool on) { on_ = on; }

    // A reduction of characters works, but not by the standard: said once.
    void reduction(const Op& op, const Datatype& datatype);
    // What is sent has to match what it is received as, which may be longer (MPI 5.0 section 3.3.1).
    std::optional<layout::Signature> of(const p2p::Buffer& buffer) const override;
    Status compare(const layout::Signature& sent, Bytes bytes, int source,
                   const p2p::Buffer& receive) const override;
    // The same of a one-sided operation, whose origin names both: `from` goes into `into`.
    Status one_sided(const p2p::Buffer& from, const p2p::Buffer& into) const;
    // Handles that the program has not freed, one line; nothing when there are none.
    void leaks() const;

    // Packed memory of ours that is sent or received in place of a buffer of the program.
    class StandIn {
      public:
        StandIn(Checks& checks, const void* packed, const p2p::Buffer& buffer)
            : checks_(checks), packed_(checks.on() && buffer.bytes() > 0 ? packed : nullptr) {
            if (packed_ != nullptr) checks_.stand_ins_[packed_] = buffer;
        }
        ~StandIn() {
            if (packed_ != nullptr) checks_.stand_ins_.erase(packed_);
        }
        StandIn(const StandIn&) = delete;
        StandIn& operator=(const StandIn&) = delete;

      private:
        Checks& checks_;
        const void* const packed_;
    };

  private:
    const p2p::Buffer& of_program(const p2p::Buffer& buffer) const;

    bool on_;
    bool said_characters_ = false;
    std::map<const void*, p2p::Buffer> stand_ins_;  // by address
};

}  // namespace gantry::mpi
