// SPDX-License-Identifier: BSD-3-Clause
//
// The parameter of the kernels `gantry_reduce_...`: vectors of equal elements become one. Every word
// has 8 bytes, so that the simulated driver can recognise addresses among them.
//
//   destination[0][i] = ((source[0][i] op source[1][i]) op source[2][i]) ...
//
// and the same in every other destination. A destination may be one of the sources. Vectors that overlap otherwise give no defined result.
#pragma once

namespace gantry::kernels {

using Word = unsigned long long;

inline constexpr unsigned kReduceThreads = 256;
// A vector for each GPU of a large node.
inline constexpr unsigned kMostOperands = 16;

// Integers come as unsigned ones; only their order knows the sign.
enum class Combine : unsigned {
    sum,
    product,
    min,
    max,
    signed_min,
    signed_max,
    bit_and,
    bit_or,
    bit_xor,
    logical_and,
    logical_or,
    logical_xor,
};

struct ReduceWork {
    Word count;         // elements; bytes for gantry_reduce_bits
    Word operation;     // a Combine
    Word operands;      // sources: 1 to kMostOperands
    Word destinations;  // likewise
    Word source[kMostOperands];
    Word destination[kMostOperands];
};

// The kernels beside gantry_reduce_bits: name, family and element (reduce_elements.hpp). A list is a
// module.
#define GANTRY_REDUCE_INTEGERS(KERNEL)      \
    KERNEL(int8, Integers<unsigned char>)   \
    KERNEL(int16, Integers<unsigned short>) \
    KERNEL(int32, Integers<unsigned>)       \
    KERNEL(int64, Integers<Word>)
#define GANTRY_REDUCE_REALS(KERNEL)          \
    KERNEL(float32, Reals<float>)            \
    KERNEL(float64, Reals<double>)           \
    KERNEL(complex64, ComplexNumbers<float>) \
    KERNEL(complex128, ComplexNumbers<double>)
#define GANTRY_REDUCE_PAIRS(KERNEL)          \
    KERNEL(int128, Integers<Unsigned128>)    \
    KERNEL(float_int, Pairs<float, int>)     \
    KERNEL(double_int, Pairs<double, int>)   \
    KERNEL(long_int, Pairs<long long, int>)  \
    KERNEL(int_int, Pairs<int, int>)         \
    KERNEL(short_int, Pairs<short, int>)     \
    KERNEL(float_float, Pairs<float, float>) \
    KERNEL(double_double, Pairs<double, double>)

// The elements that gantry_copy_resident reduces, too (copy_resident.hpp): those that most programs have.
#define GANTRY_REDUCE_RESIDENT(KERNEL) \
    KERNEL(int32, Integers<unsigned>)  \
    KERNEL(int64, Integers<Word>)      \
    KERNEL(float32, Reals<float>)      \
    KERNEL(float64, Reals<double>)
enum class ResidentElement : unsigned {
#define GANTRY_NAME(name, ...) name,
    GANTRY_REDUCE_RESIDENT(GANTRY_NAME)
#undef GANTRY_NAME
};

}  // namespace gantry::kernels
