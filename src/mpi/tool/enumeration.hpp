// SPDX-License-Identifier: BSD-3-Clause
//
// Enumerations: the words that a variable of type MPI_INT stands for. An item's value is its index.
#pragma once

#include "base/config.hpp"

#include <mpi.h>

#include <deque>
#include <optional>
#include <string_view>
#include <vector>

namespace gantry::mpi::tool {

struct Enumeration {
    std::string_view name;
    std::vector<std::string_view> items;
    MPI_T_enum handle() const {
        return reinterpret_cast<MPI_T_enum>(const_cast<Enumeration*>(this));
    }
    std::optional<int> value_of(std::string_view item) const;
};

class Enumerations {
  public:
    Enumerations();
    // Of a parameter that is a switch or takes one of a few words; null: it is neither.
    const Enumeration* of(const config::Parameter& parameter) const;
    const Enumeration& phases() const { return all_.front(); }
    // Null for what is no enumeration.
    const Enumeration* find(MPI_T_enum handle) const;

  private:
    std::deque<Enumeration> all_;  // phases, switch, and one for each parameter of words
};

}  // namespace gantry::mpi::tool
