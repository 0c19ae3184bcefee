// SPDX-License-Identifier: BSD-3-Clause
//
// The twins of this library's kernels, a file a family.
#pragma once

#include "device/kernels/reduce.hpp"
#include "kernels.hpp"

namespace gantry::kernels {

// What gantry_copy_resident does with a reduction; the addresses are the host's.
void reduce_on_host(const ReduceWork& work, ResidentElement element);

void add_copy_many(void (*add)(const simgpu_twin* twin));
void add_copy_resident(void (*add)(const simgpu_twin* twin));
void add_move_rows(void (*add)(const simgpu_twin* twin));
void add_reduce(void (*add)(const simgpu_twin* twin));

}  // namespace gantry::kernels
