// SPDX-License-Identifier: BSD-3-Clause
// A fat binary: what NVIDIA's tools wrap compiled code in, here of one architecture each, to keep it compressed.
// cuModuleLoadData takes it in place of the code itself.
#pragma once

#include <vector>

namespace simgpu {

bool looks_like_fat_binary(const void* image);

// The first ELF file in it, unpacked; empty: there is none, or it is packed in another way than LZ4.
std::vector<char> first_cubin_of(const void* fat_binary);

}  // namespace simgpu
