// SPDX-License-Identifier: BSD-3-Clause
//
// Entry points have the names of the standard's functions and other types, so in C++ they are
// functions of this namespace; their symbols are given by hand: PMPI_x, and MPI_x as a weak alias,
// which a profiler's own takes the place of.
#pragma once

#define GANTRY_EXPORT(result, name, parameters)                                           \
    result name parameters __asm__("PMPI_" #name) __attribute__((visibility("default"))); \
    result weak_##name parameters __asm__("MPI_" #name)                                   \
        __attribute__((weak, alias("PMPI_" #name), visibility("default")));               \
    result name parameters

// For declarations of variables: they are reached without a table, which the compiler could not know.
#define GANTRY_HIDDEN __attribute__((visibility("hidden")))

// A variable that programs name.
#define GANTRY_VARIABLE(type, name, symbol)                                  \
    extern type name __asm__(symbol) __attribute__((visibility("default"))); \
    type name
// An attribute function that programs name: it copies the value as it is, or not at all.
#define GANTRY_COPY_FUNCTION(name, symbol, Handle, copies)                       \
    int name(Handle, int, void*, void* in, void* out, int* flag) __asm__(symbol) \
        __attribute__((visibility("default")));                                  \
    int name(Handle, int, void*, void* in, void* out, int* flag) {               \
        if (copies != 0) *static_cast<void**>(out) = in;                         \
        *flag = copies;                                                          \
        return 0;                                                                \
    }
