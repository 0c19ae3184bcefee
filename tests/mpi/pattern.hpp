// SPDX-License-Identifier: BSD-3-Clause
//
// What messages carry: each byte is a function of a seed and of its place.
#pragma once

#include <cstddef>
#include <span>

namespace mpi_tests {

std::byte pattern(unsigned seed, std::size_t place);
void fill_with_pattern(unsigned seed, std::span<std::byte> bytes);
// The place of the first byte that is another one, or -1.
std::ptrdiff_t differs_from_pattern(unsigned seed, std::span<const std::byte> bytes);

}  // namespace mpi_tests
