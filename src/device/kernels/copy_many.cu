// SPDX-License-Identifier: BSD-3-Clause
//
// gantry_copy_many, gantry_copy_few: many small copies between this GPU and memory that it reaches
// (its own, or a peer's through a mapping), in one launch.
//
//   one thread   16 bytes at a time (copy_units.hpp), stride = the block
//   one block    part p of copy c, item = c x parts + p; grid-stride over items
//   the result   is valid for everybody, the host included, once the item's flag holds `sequence`
//
// Parts are cut at multiples of 16 bytes of the copy, so an aligned copy stays aligned.
#include "copy_many.hpp"
#include "copy_units.hpp"

namespace gantry::kernels {
namespace {

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
        copy_run(to, from, length);
        raise_flag(work.flags + item * kFlagBytes, static_cast<unsigned>(work.sequence));
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
