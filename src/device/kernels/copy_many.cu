// SPDX-License-Identifier: BSD-3-Clause
//
// gantry_copy_many, gantry_copy_few: many small copies between this GPU and memory that it reaches
// (its own, or a peer's through a mapping), in one launch.
//
//   one thread   16 bytes at a time (4 or 1 where addresses are not aligned), stride = the block
//   one block    part p of copy c, item = c x parts + p; grid-stride over items
//   the result   is valid for everybody, the host included, once the item's flag holds `sequence`
//
// Parts are cut at multiples of 16 bytes of the copy, so an aligned copy stays aligned.
#include "copy_many.hpp"
#include "dialect.hpp"

namespace gantry::kernels {
namespace {

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

template <class Work>
GANTRY_DEVICE __attribute__((always_inline)) inline void copy_all(const Work& work) {
    const Word items = work.copies * work.parts;
    for (Word item = block(); item < items; item += blocks()) {
        const Word which = item / work.parts, part = item % work.parts;
        const Word bytes = work.copy[which].bytes;
        const Word share = ((bytes + work.parts - 1) / work.parts + 15) & ~Word{15};
        const Word begin = part * share < bytes ? part * share : bytes;
        const Word length = bytes - begin < share ? bytes - begin : share;
        const Word to = work.copy[which].destination + begin;
        const Word from = work.copy[which].source + begin;
        const Word odd = to | from | length;
        if ((odd & 15) == 0)
            copy_units<Quad>(to, from, length);
        else if ((odd & 3) == 0)
            copy_units<unsigned>(to, from, length);
        else
            copy_units<unsigned char>(to, from, length);
        // What the block's threads stored is before the barrier for the first thread, whose fence
        // covers it too: then the flag may be raised.
        meet();
        if (thread() == 0) {
            publish();
            *reinterpret_cast<volatile unsigned*>(work.flags + item * kFlagBytes) =
                static_cast<unsigned>(work.sequence);
        }
    }
}

}  // namespace

GANTRY_KERNEL void gantry_copy_many(CopyMany work) {
    copy_all(work);
}

GANTRY_KERNEL void gantry_copy_few(CopyFew work) {
    copy_all(work);
}

}  // namespace gantry::kernels
