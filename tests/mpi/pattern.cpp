// SPDX-License-Identifier: BSD-3-Clause
#include "pattern.hpp"

#include <cstdint>

namespace mpi_tests {

std::byte pattern(unsigned seed, std::size_t place) {
    const auto value =
        static_cast<std::uint64_t>(place) * 0x9E3779B97F4A7C15ull + seed * 0xD1B54A32D192ED03ull;
    return static_cast<std::byte>(value >> 56);
}

void fill_with_pattern(unsigned seed, std::span<std::byte> bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = pattern(seed, i);
}

std::ptrdiff_t differs_from_pattern(unsigned seed, std::span<const std::byte> bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i)
        if (bytes[i] != pattern(seed, i)) return static_cast<std::ptrdiff_t>(i);
    return -1;
}

}  // namespace mpi_tests
