// SPDX-License-Identifier: BSD-3-Clause
//
// The parameter of the kernel `gantry_copy_many`: up to kCopiesPerLaunch independent copies, each
// shared out to `parts` blocks. Every word has 8 bytes, so that the simulated driver can recognise
// addresses among them.
#pragma once

namespace gantry::kernels {

using Word = unsigned long long;

inline constexpr unsigned kCopiesPerLaunch = 128;
inline constexpr unsigned kCopyThreads = 256;
// One flag per block (32 bits). They lie side by side: the host looks at many of them at once, and
// each cache line that a GPU wrote costs it a miss.
inline constexpr unsigned kFlagBytes = 4;

struct CopyMany {
    Word flags;     // device address of the first block's flag
    Word sequence;  // what a finished block writes there (32 bits)
    Word parts;     // blocks of each copy; the grid is at least copies x parts blocks, or loops
    Word copies;
    struct {
        Word destination, source, bytes;
    } copy[kCopiesPerLaunch];
};

}  // namespace gantry::kernels
