// SPDX-License-Identifier: BSD-3-Clause
#include "transfer/shared_gpu.hpp"

#include <algorithm>

namespace gantry::transfer {
bool SharedGpu::invest(Nanoseconds saving, Nanoseconds turn, Nanoseconds now) {
    turn_.put_aside(saving);
    if (!turn_.covers(turn)) return false;
    turn_.begin_anew();
    used_ = std::max<Nanoseconds>(now, 1);
    first_ = true;
    return true;
}

void SharedGpu::copied(Nanoseconds took, Nanoseconds expected, Nanoseconds turn, Nanoseconds now,
                       bool measured) {
    const bool slow = measured && took > expected + turn / 2;
    used_ = std::max<Nanoseconds>(now, 1);
    if (!slow && ++fast_ >= limits_.trusted) turn_.was_worth_it();
    if (slow && !first_) {
        used_ = 0;
        turn_.begin_anew();
        fast_ = 0;
        turn_.was_in_vain(limits_.highest_price);
    }
    first_ = false;
}

}  // namespace gantry::transfer
