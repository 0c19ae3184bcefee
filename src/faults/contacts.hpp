// SPDX-License-Identifier: BSD-3-Clause
//
// Contacts: a connection to each rank of another node, also to those that this rank has never spoken to. A
// network notices the deaths of ranks that it is connected to, and of no others; so each rank makes contact
// when nobody tells of deaths any more.
#pragma once

#include "faults/wire.hpp"
#include "transfer/context.hpp"

#include <span>

namespace gantry::faults {

class Contacts {
  public:
    // Outlives this. Registers its kind of message, which asks for nothing.
    explicit Contacts(transfer::Context& context);
    Contacts(const Contacts&) = delete;
    Contacts& operator=(const Contacts&) = delete;

    // Speaks once to each of them that lives on another node. Whoever cannot be reached is lost. A second call
    // does nothing.
    void make(std::span<const int> peers);

  private:
    void on_message(int, transport::ConstSpan, transport::ConstSpan) {}

    transfer::Context& context_;
    bool made_ = false;
};

}  // namespace gantry::faults
