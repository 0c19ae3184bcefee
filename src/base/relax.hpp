// SPDX-License-Identifier: BSD-3-Clause
//
// relax(): between two looks of a thread that spins; the other thread of the same core goes first.
#pragma once

namespace gantry {

inline void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    asm volatile("" ::: "memory");
#endif
}

}  // namespace gantry
