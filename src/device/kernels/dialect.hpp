// SPDX-License-Identifier: BSD-3-Clause
//
// What kernels may use of a GPU, without any vendor header (clang 19): indices, one barrier, one
// fence.
#pragma once

#define GANTRY_KERNEL extern "C" __attribute__((global))
#define GANTRY_DEVICE __attribute__((device))

namespace gantry::kernels {

GANTRY_DEVICE inline unsigned block() {
    return __nvvm_read_ptx_sreg_ctaid_x();
}
GANTRY_DEVICE inline unsigned blocks() {
    return __nvvm_read_ptx_sreg_nctaid_x();
}
GANTRY_DEVICE inline unsigned thread() {
    return __nvvm_read_ptx_sreg_tid_x();
}
GANTRY_DEVICE inline unsigned threads() {
    return __nvvm_read_ptx_sreg_ntid_x();
}
// All threads of the block.
GANTRY_DEVICE inline void meet() {
    __syncthreads();
}
// What this thread stored before is seen by the host and every GPU before what it stores after.
GANTRY_DEVICE inline void publish() {
    __nvvm_membar_sys();
}

}  // namespace gantry::kernels
