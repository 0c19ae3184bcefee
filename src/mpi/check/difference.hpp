// SPDX-License-Identifier: BSD-3-Clause
//
// Difference: two ranks that do not agree about data that not all ranks know of. Plain data: who
// finds one tells all ranks.
#pragma once

#include "mpi/check/groups.hpp"
#include "mpi/check/part.hpp"

namespace gantry::mpi {

struct Difference {
    enum class About : std::int32_t {
        nothing,  // there is none
        data,     // `one` sends what `other` receives
        share,    // both say what the share of `whose` is
    };
    About about = About::nothing;
    std::int32_t one = 0, other = 0, whose = 0;  // ranks of the team
    Part ones, others;

    Status told(const Groups& groups) const;
};

}  // namespace gantry::mpi
