// SPDX-License-Identifier: BSD-3-Clause
// Code compiled for one GPU architecture, as far as the simulator looks into it: an ELF file in memory,
// of which it reads for what architecture it is, and the names of its kernels with the sizes of
// their parameters. What runs are their host twins (kernels.hpp).
#pragma once

#include <vector>

#include "twins.hpp"

namespace simgpu {

bool looks_like_cubin(const void* image);

struct Cubin {
    int major = 0, minor = 0;  // of the compute capability
    std::vector<KernelDeclaration> kernels;
};

// Nothing sensible: no kernels.
Cubin read_cubin(const void* image);

}  // namespace simgpu
