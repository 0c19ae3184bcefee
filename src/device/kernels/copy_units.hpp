// SPDX-License-Identifier: BSD-3-Clause
//
// One run of bytes, copied by all threads of a block: 16 bytes a thread at a time, 4 or 1 where
// addresses are not aligned.
#pragma once

#include "dialect.hpp"

namespace gantry::kernels {

using Word = unsigned long long;
using Quad = unsigned __attribute__((ext_vector_type(4)));

// As long as there are so many left for each thread, all of them loaded before the first is stored:
// a peer's memory answers after a microsecond.
template <unsigned kLoads, class Unit>
GANTRY_DEVICE inline Word copy_at_once(Unit* to, const Unit* from, Word at, Word stride,
                                       Word units) {
    for (; at + (kLoads - 1) * stride < units; at += kLoads * stride) {
        Unit loaded[kLoads];
#pragma unroll
        for (unsigned i = 0; i < kLoads; ++i)
            loaded[i] = from[at + i * stride];
#pragma unroll
        for (unsigned i = 0; i < kLoads; ++i)
            to[at + i * stride] = loaded[i];
    }
    return at;
}

template <class Unit>
GANTRY_DEVICE inline void copy_units(Word destination, Word source, Word bytes) {
    auto* to = reinterpret_cast<Unit*>(destination);
    auto* from = reinterpret_cast<const Unit*>(source);
    const Word units = bytes / sizeof(Unit);
    const Word stride = threads();
    Word at = thread();
    at = copy_at_once<8>(to, from, at, stride, units);
    at = copy_at_once<4>(to, from, at, stride, units);
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
