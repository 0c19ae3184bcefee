// SPDX-License-Identifier: BSD-3-Clause
#include "base/clock.hpp"

#include <ctime>

namespace gantry {

Nanoseconds SteadyClock::now() const {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * kSecond + t.tv_nsec;
}

}  // namespace gantry
