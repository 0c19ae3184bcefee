// SPDX-License-Identifier: BSD-3-Clause
#include "transfer/shared_gpu.hpp"

#include <algorithm>

namespace gantry::transfer {
bool SharedGpu::invest(Nanoseconds saving, Nanoseconds turn, Nanoseconds now) {
    saved_ += std::max<Nanoseconds>(saving, 0);
    if (saved_ < price_ * turn) return false;
    saved_ = 0;
    used_ = std::max<Nanoseconds>(now, 1);
    first_ = true;
    return true;
}

void SharedGpu::copied(Nanoseconds took, Nanoseconds expected, Nanoseconds turn, Nanoseconds now,
                       bool measured) {
    const bool slow = measured && took > expected + turn / 2;
    used_ = std::max<Nanoseconds>(now, 1);
    if (!slow && ++fast_ >= limits_.trusted) price_ = 1;
    if (slow && !first_) {
        used_ = 0;
        saved_ = 0;
        fast_ = 0;
        price_ = std::min(2 * price_, limits_.highest_price);
    }
    first_ = false;
}

}  // namespace gantry::transfer
