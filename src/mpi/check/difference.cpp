// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/check/difference.hpp"

namespace gantry::mpi {

Status Difference::told(const Groups& groups) const {
    const int error_class = class_of_difference(ones, others);
    switch (about) {
        case About::nothing: break;
        case About::data:
            return failure(error_class, "{} sends {} to {}, which receives {} from it",
                           groups.name(one), ones.words(), groups.name(other), others.words());
        case About::share:
            return failure(error_class, "{} names {} as the share of {}, {} names {}",
                           groups.name(one), ones.words(), groups.name(whose), groups.name(other),
                           others.words());
    }
    return success();
}

}  // namespace gantry::mpi
