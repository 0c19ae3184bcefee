// SPDX-License-Identifier: BSD-3-Clause
//
// The applications' kernels as PTX text (ptx/*.ptx beside each .cu, written by `./dev ptx`); CMakeLists.txt
// writes the definitions.
#pragma once

namespace gantry::apps {

const char* move_ptx();
const char* lbm_ptx();
const char* awp_ptx();

}  // namespace gantry::apps
