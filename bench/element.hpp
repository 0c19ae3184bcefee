// SPDX-License-Identifier: BSD-3-Clause
//
// What a collective's numbers are: a predefined type, and how a reduction combines two of them. Contents
// are whole numbers that the type and every sum of them hold exactly, so that a result is right or wrong.
#pragma once

#include "base/units.hpp"

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gantry::bench {

enum class Element : std::uint8_t { int8, int32, int64, float32, float64 };
enum class Combination : std::uint8_t { sum, maximum, minimum, bits_and, bits_or, bits_xor };

// As they are asked for: char, int, long, float, double; sum, max, min, band, bor, bxor.
Element element_named(std::string_view name);
Combination combination_named(std::string_view name);
inline bool is_of_bits(Combination op) {
    return op >= Combination::bits_and;
}
inline bool is_floating(Element element) {
    return element >= Element::float32;
}

Bytes size_of(Element element);
MPI_Datatype type_of(Element element);
MPI_Op op_of(Combination op);
// Contents are from 0 to below that, where so many of them are added; 0: the type is too small.
std::int64_t limit_of(Element element, int added);

void store(Element element, std::byte* at, std::int64_t number);
double load(Element element, const std::byte* at);
std::int64_t combined(Combination op, std::int64_t one, std::int64_t other);

}  // namespace gantry::bench
