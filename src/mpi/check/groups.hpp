// SPDX-License-Identifier: BSD-3-Clause
//
// Groups: the ranks of a team as the program knows them. The team of an inter-communicator has two
// groups, one behind the other (comm.hpp); in each, ranks count from 0.
#pragma once

#include "coll/team.hpp"

#include <fmt/format.h>

#include <string>

namespace gantry::mpi {

class Groups {
  public:
    explicit Groups(const coll::Team& team) : border_(team.border), me_(team.rank()) {}

    bool are_two() const { return border_ > 0; }
    // Which group a rank of the team is in: 0 or 1.
    int group_of(int member) const { return are_two() && member >= border_ ? 1 : 0; }
    // Its rank there.
    int rank_of(int member) const { return member - first_of(group_of(member)); }
    // The rank of the team that I call so: in the other group, if there is one.
    int peer(int rank) const { return rank + (are_two() ? first_of(1 - group_of(me_)) : 0); }
    // In a sentence that this rank's program reads.
    std::string name(int member) const {
        if (!are_two()) return fmt::format("rank {}", member);
        return fmt::format("rank {} of the {} group", rank_of(member),
                           group_of(member) == group_of(me_) ? "local" : "remote");
    }

  private:
    int first_of(int group) const { return group == 0 ? 0 : border_; }

    int border_, me_;
};

}  // namespace gantry::mpi
