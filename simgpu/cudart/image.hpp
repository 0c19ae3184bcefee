// SPDX-License-Identifier: BSD-3-Clause
// What nvcc puts into a program: a fat binary, of which the simulated driver takes the PTX text.
#pragma once

#include <string>

namespace simgpu::cudart {

// The first PTX text in the fat binary behind the wrapper that __cudaRegisterFatBinary gets, or in a
// plain text; empty: there is none that is not compressed (nvcc --no-compress -gencode code=compute_XX).
std::string ptx_of(const void* wrapper_or_text);

}  // namespace simgpu::cudart
