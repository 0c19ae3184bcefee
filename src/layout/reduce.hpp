// SPDX-License-Identifier: BSD-3-Clause
//
// The standard's reductions on host memory (MPI 5.0 section 6.9.2): inout[i] = in[i] op inout[i]
// for each operation and each kind of basic item that the standard allows together. `reduction`
// finds the function in a table; null means the combination is not legal.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gantry::layout {

enum class Operation : std::uint8_t {
    sum,
    min,
    max,
    prod,
    band,
    bor,
    bxor,
    land,
    lor,
    lxor,
    minloc,
    maxloc,
    replace,
    no_op,
};
inline constexpr int kOperations = 14;

// Basic items as memory: several MPI types share one (MPI_INT, MPI_INT32_T). What is legal differs
// too: MPI_BYTE has the size of MPI_UINT8_T, but only bitwise operations.
enum class Element : std::uint8_t {
    none,
    int8,
    int16,
    int32,
    int64,
    int128,
    uint8,
    uint16,
    uint32,
    uint64,
    float32,
    float64,
    long_double,
    float128,
    complex64,
    complex128,
    complex_long_double,
    complex256,
    boolean,  // C and C++ bool
    logical8,
    logical16,
    logical32,
    logical64,
    logical128,  // Fortran: 0 is false
    byte,
    address,
    count,
    offset,  // MPI_AINT, MPI_COUNT, MPI_OFFSET: integers, also for bitwise operations
    float_int,
    double_int,
    long_int,
    int_int,
    short_int,
    long_double_int,
    real_real,
    double_double,
    integer_integer,
    float16,
};
inline constexpr int kElements = static_cast<int>(Element::float16) + 1;

// `first` and `second` are the operands; the result replaces the second.
using Reduction = void (*)(const void* first, void* second, std::size_t count);
Reduction reduction(Operation operation, Element element);

const char* name(Operation operation);  // "MPI_SUM"

}  // namespace gantry::layout
