// SPDX-License-Identifier: BSD-3-Clause
//
// The kernels as PTX text (ptx/*.ptx, made by clang-19 from the .cu); cmake/kernels.cmake writes
// the definitions.
#pragma once

namespace gantry::kernels {

const char* copy_many_ptx();
const char* copy_resident_ptx();
const char* move_rows_ptx();
const char* reduce_integers_ptx();
const char* reduce_pairs_ptx();
const char* reduce_reals_ptx();

}  // namespace gantry::kernels
