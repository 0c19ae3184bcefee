// SPDX-License-Identifier: BSD-3-Clause
//
// Random tests take few seeds each time, and many by `./dev test --all`, which sets TESTS_ALL.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace gantry {

inline bool all_is_tested() {
    return std::getenv("TESTS_ALL") != nullptr;
}

inline std::uint64_t seeds(std::uint64_t few, std::uint64_t many) {
    return all_is_tested() ? many : few;
}

}  // namespace gantry
