// SPDX-License-Identifier: BSD-3-Clause
//
// What a strided message cost one side.
#pragma once

#include "base/units.hpp"

#include <ostream>

namespace gantry::world {

struct Cost {
    Bytes copies = 0, copied = 0, launches = 0;
    bool operator==(const Cost&) const = default;
    friend std::ostream& operator<<(std::ostream& out, const Cost& cost) {
        return out << cost.copies << " copies of " << cost.copied << " bytes, " << cost.launches
                   << " launches";
    }
};

}  // namespace gantry::world
