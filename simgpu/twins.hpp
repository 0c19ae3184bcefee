// SPDX-License-Identifier: BSD-3-Clause
// The table of kernel twins and the names a PTX text declares. Guarded by the driver's lock.
#pragma once

#include <string>
#include <vector>

#include "kernels.hpp"

namespace simgpu {

struct KernelDeclaration {
    std::string name;
    std::vector<std::size_t> parameter_bytes;
};

// The .entry declarations of a PTX text; nothing when it is not PTX.
std::vector<KernelDeclaration> declared_kernels(const char* ptx);
bool looks_like_ptx(const char* image);

void load_twins_once();
void add_twin(const simgpu_twin* twin);
const simgpu_twin* find_twin(const std::string& name);

}  // namespace simgpu
