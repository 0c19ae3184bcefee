// SPDX-License-Identifier: BSD-3-Clause
//
// Under a sanitizer everything takes several times as long, and it looks at what code does, not at how
// often. What a test repeats for breadth (seeds, moments of a death, numbers of ranks) it repeats less
// there; every kind of case stays. The same test without a sanitizer does all of it.
#pragma once

namespace gantry {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// A quarter of `count` under a sanitizer, and at least two.
constexpr int repetitions(int count) {
    if (!kSanitized || count <= 2) return count;
    return count < 8 ? 2 : count / 4;
}

}  // namespace gantry
