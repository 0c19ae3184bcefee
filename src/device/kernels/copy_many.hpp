// SPDX-License-Identifier: BSD-3-Clause
//
// The parameter of the kernels `gantry_copy_many` and `gantry_copy_few`: independent copies, each
// shared out to `parts` blocks. Every word has 8 bytes, so that the simulated driver can recognise
// addresses among them. The driver copies all of it at each launch, 3 KiB or, with a kernel of
// their own for up to kFewCopies, 800 bytes (docs/design/batches.md).
#pragma once

namespace gantry::kernels {

using Word = unsigned long long;

inline constexpr unsigned kCopiesPerLaunch = 128;
inline constexpr unsigned kFewCopies = 32;
inline constexpr unsigned kCopyThreads = 256;
// One flag per block (32 bits). They lie side by side: the host looks at many of them at once, and
// each cache line that a GPU wrote costs it a miss.
inline constexpr unsigned kFlagBytes = 4;

template <unsigned kMost>
struct CopyWork {
    Word flags;     // device address of the first block's flag
    Word sequence;  // what a finished block writes there (32 bits)
    Word parts;     // blocks of each copy; the grid is at least copies x parts blocks, or loops
    Word copies;
    struct {
        Word destination, source, bytes;
    } copy[kMost];
};
using CopyMany = CopyWork<kCopiesPerLaunch>;
using CopyFew = CopyWork<kFewCopies>;

}  // namespace gantry::kernels
