/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The kernel of bench/steps.c. All threads of the grid together look at what came in the step before and
 * write what goes out in this one; then they wait until `nanoseconds` have passed since they began.
 *
 *   for each word i:  if (received != 0 && received[i] != expected + i / block)  ++*wrong;
 *                     sent[i] = value;
 *
 * As PTX, so that the program needs no CUDA compiler; the simulated GPU runs steps_twin.cpp instead. */
#pragma once

#define STEPS_KERNEL "gantry_bench_step"

static const char* const kStepsPtx =
    ".version 6.3\n"
    ".target sm_60\n"
    ".address_size 64\n"
    ".visible .entry " STEPS_KERNEL
    "(\n"
    "    .param .u64 sent,\n"
    "    .param .u64 received,\n"
    "    .param .u64 wrong,\n"
    "    .param .u64 words,\n"
    "    .param .u64 block,\n"
    "    .param .u64 nanoseconds,\n"
    "    .param .u32 value,\n"
    "    .param .u32 expected\n"
    ")\n"
    "{\n"
    "    .reg .pred %end, %nothing_came, %right, %early;\n"
    "    .reg .b32 %threads, %block_index, %thread, %value, %expected, %part, %word, %old;\n"
    "    .reg .b64 %start, %now, %nanoseconds, %i, %stride, %words, %block, %at;\n"
    "    .reg .b64 %sent, %received, %wrong, %quotient;\n"
    "    mov.u64 %start, %globaltimer;\n"
    "    ld.param.u64 %sent, [sent];\n"
    "    ld.param.u64 %received, [received];\n"
    "    ld.param.u64 %wrong, [wrong];\n"
    "    ld.param.u64 %words, [words];\n"
    "    ld.param.u64 %block, [block];\n"
    "    ld.param.u64 %nanoseconds, [nanoseconds];\n"
    "    ld.param.u32 %value, [value];\n"
    "    ld.param.u32 %expected, [expected];\n"
    "    mov.u32 %threads, %ntid.x;\n"
    "    mov.u32 %block_index, %ctaid.x;\n"
    "    mov.u32 %thread, %tid.x;\n"
    "    mul.wide.u32 %i, %block_index, %threads;\n"
    "    cvt.u64.u32 %stride, %thread;\n"
    "    add.u64 %i, %i, %stride;\n"
    "    mov.u32 %block_index, %nctaid.x;\n"
    "    mul.wide.u32 %stride, %block_index, %threads;\n"
    "    setp.eq.u64 %nothing_came, %received, 0;\n"
    "next:\n"
    "    setp.ge.u64 %end, %i, %words;\n"
    "    @%end bra wait;\n"
    "    shl.b64 %at, %i, 2;\n"
    "    @%nothing_came bra write;\n"
    "    add.u64 %quotient, %received, %at;\n"
    "    ld.global.u32 %word, [%quotient];\n"
    "    div.u64 %quotient, %i, %block;\n"
    "    cvt.u32.u64 %part, %quotient;\n"
    "    add.u32 %part, %part, %expected;\n"
    "    setp.eq.u32 %right, %word, %part;\n"
    "    @!%right atom.global.add.u32 %old, [%wrong], 1;\n"
    "write:\n"
    "    add.u64 %at, %at, %sent;\n"
    "    st.global.u32 [%at], %value;\n"
    "    add.u64 %i, %i, %stride;\n"
    "    bra next;\n"
    "wait:\n"
    "    mov.u64 %now, %globaltimer;\n"
    "    sub.u64 %now, %now, %start;\n"
    "    setp.lt.u64 %early, %now, %nanoseconds;\n"
    "    @%early bra wait;\n"
    "    ret;\n"
    "}\n";
