// SPDX-License-Identifier: BSD-3-Clause
//
// What GANTRY_CHECK=1 adds: faults of a program that cost time to find, or that most libraries
// tolerate, are told.
#pragma once

#include "base/status.hpp"
#include "p2p/request.hpp"

namespace gantry::mpi {

struct Datatype;
struct Op;

class Checks {
  public:
    explicit Checks(bool on) : on_(on) {}
    bool on() const { return on_; }

    // A reduction of characters works, but not by the standard: said once.
    void reduction(const Op& op, const Datatype& datatype);
    // A receive that ended well. An error: its message ends inside a basic item of its datatype, so
    // the one that was sent is another.
    Status received(const p2p::Request& receive) const;
    // Handles that the program has not freed, one line; nothing when there are none.
    void leaks() const;

  private:
    const bool on_;
    bool said_characters_ = false;
};

}  // namespace gantry::mpi
