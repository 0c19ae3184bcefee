// SPDX-License-Identifier: BSD-3-Clause
//
// What kernels may use of a GPU, without any vendor header (clang 19): indices, barriers,
// fences, and words that are read while others write them.
#pragma once

#define GANTRY_KERNEL extern "C" __attribute__((global))
#define GANTRY_DEVICE __attribute__((device))
#define GANTRY_SHARED static __attribute__((shared))

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

// --- a warp ---
GANTRY_DEVICE inline unsigned ballot(bool mine) {
    return __nvvm_vote_ballot_sync(~0u, mine);
}
GANTRY_DEVICE inline bool any(bool mine) {
    return __nvvm_vote_any_sync(~0u, mine);
}
GANTRY_DEVICE inline void together() {
    __nvvm_bar_warp_sync(~0u);
}

// The sum of what this lane and those before it have.
GANTRY_DEVICE inline unsigned sum_so_far(unsigned lane, unsigned value) {
#pragma unroll
    for (unsigned by = 1; by < 32; by *= 2) {
        const unsigned before = static_cast<unsigned>(
            __nvvm_shfl_sync_up_i32(~0, static_cast<int>(value), static_cast<int>(by), 0));
        if (lane >= by) value += before;
    }
    return value;
}
GANTRY_DEVICE inline unsigned of_last_lane(unsigned value) {
    return static_cast<unsigned>(__nvvm_shfl_sync_idx_i32(~0, static_cast<int>(value), 31, 31));
}

// --- words that change while a kernel runs ---
using Shared = unsigned long long;

GANTRY_DEVICE inline Shared clock_ns() {
    Shared now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}
struct alignas(16) TwoWords {
    Shared first, second;
};
// Each word by itself; the host may be writing them. What it stored before what is seen here is
// seen by what comes behind: so the first-level cache, which may hold older bytes, is emptied.
GANTRY_DEVICE inline TwoWords acquire_of_host(Shared address) {
    TwoWords words;
    asm volatile("ld.acquire.sys.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(words.first), "=l"(words.second)
                 : "l"(address)
                 : "memory");
    return words;
}
// Likewise, of another block's.
GANTRY_DEVICE inline TwoWords acquire_of_device(const TwoWords* from) {
    TwoWords words;
    asm volatile("ld.acquire.gpu.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(words.first), "=l"(words.second)
                 : "l"(from)
                 : "memory");
    return words;
}
GANTRY_DEVICE inline TwoWords load_of_device(const TwoWords* from) {
    TwoWords words;
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(words.first), "=l"(words.second)
                 : "l"(from)
                 : "memory");
    return words;
}
GANTRY_DEVICE inline Shared load_of_device(const Shared* from) {
    Shared word;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
    return word;
}
// What this thread has seen, who acquires these words sees, too.
GANTRY_DEVICE inline void release_on_device(TwoWords* to, const TwoWords& words) {
    asm volatile("st.release.gpu.global.v2.u64 [%0], {%1, %2};"
                 :
                 : "l"(to), "l"(words.first), "l"(words.second)
                 : "memory");
}
GANTRY_DEVICE inline void store_on_device(Shared* to, Shared word) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" : : "l"(to), "l"(word) : "memory");
}
GANTRY_DEVICE inline void store_for_all(Shared* to, Shared word) {
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" : : "l"(to), "l"(word) : "memory");
}
// The next number, from 0 on.
GANTRY_DEVICE inline Shared draw(Shared* counter) {
    Shared number;
    asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], 1;"
                 : "=l"(number)
                 : "l"(counter)
                 : "memory");
    return number;
}

}  // namespace gantry::kernels
