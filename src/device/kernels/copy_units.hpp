// SPDX-License-Identifier: BSD-3-Clause
//
// One run of bytes, copied by all threads of a block: 16 bytes a thread at a time, 4 or 1 where
// addresses are not aligned.
#pragma once

#include "dialect.hpp"

namespace gantry::kernels {

using Word = unsigned long long;
using Quad = unsigned __attribute__((ext_vector_type(4)));

template <class Unit>
GANTRY_DEVICE inline void copy_units(Word destination, Word source, Word bytes) {
    auto* to = reinterpret_cast<Unit*>(destination);
    auto* from = reinterpret_cast<const Unit*>(source);
    const Word units = bytes / sizeof(Unit);
    const Word stride = threads();
    Word at = thread();
    // Four loads in flight a thread: a peer's memory answers after a microsecond.
    for (; at + 3 * stride < units; at += 4 * stride) {
        const Unit a = from[at], b = from[at + stride], c = from[at + 2 * stride],
                   d = from[at + 3 * stride];
        to[at] = a;
        to[at + stride] = b;
        to[at + 2 * stride] = c;
        to[at + 3 * stride] = d;
    }
    for (; at < units; at += stride)
        to[at] = from[at];
}

GANTRY_DEVICE inline void copy_run(Word destination, Word source, Word bytes) {
    const Word odd = destination | source | bytes;
    if ((odd & 15) == 0)
        copy_units<Quad>(destination, source, bytes);
    else if ((odd & 3) == 0)
        copy_units<unsigned>(destination, source, bytes);
    else
        copy_units<unsigned char>(destination, source, bytes);
}

// What the block's threads stored is before the barrier for the first thread, whose fence covers it
// too: then the flag may be raised.
GANTRY_DEVICE inline void raise_flag(Word flag, unsigned value) {
    meet();
    if (thread() != 0) return;
    publish();
    *reinterpret_cast<volatile unsigned*>(flag) = value;
}

}  // namespace gantry::kernels
