// SPDX-License-Identifier: BSD-3-Clause
//
// Half: a number of 16 bits as IEEE 754 has it, added and multiplied as a float and rounded to the nearest
// (even) one. Not every compiler has such a type in C++.
//
//     sign 1 | exponent 5, bias 15 | fraction 10
#pragma once

#include <bit>
#include <cstdint>

namespace gantry::layout {

struct Half {
    std::uint16_t bits;

    float value() const {
        const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
        const std::uint32_t exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
        if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000 | fraction << 13);
        if (exponent != 0)
            return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
        const float small = static_cast<float>(fraction) * 0x1p-24f;  // subnormal, or zero
        return sign != 0 ? -small : small;
    }
    static Half of(float value) {
        const auto all = std::bit_cast<std::uint32_t>(value);
        const auto sign = static_cast<std::uint16_t>(all >> 16 & 0x8000);
        const std::uint32_t size = all & 0x7fffffff;
        const auto with = [sign](std::uint32_t rest) {
            return Half{static_cast<std::uint16_t>(sign | rest)};
        };
        if (size > 0x7f800000) return with(0x7e00);   // no number
        if (size >= 0x477ff000) return with(0x7c00);  // rounds to infinity
        if (size < 0x38800000) {                      // subnormal: the sum's last bit is a half's
            const float rounded = std::bit_cast<float>(size) + 0.5f;
            return with(std::bit_cast<std::uint32_t>(rounded) - std::bit_cast<std::uint32_t>(0.5f));
        }
        const std::uint32_t odd = size >> 13 & 1;
        return with((size - (112u << 23) + 0xfff + odd) >> 13);
    }

    friend Half operator+(Half a, Half b) { return of(a.value() + b.value()); }
    friend Half operator*(Half a, Half b) { return of(a.value() * b.value()); }
    friend bool operator<(Half a, Half b) { return a.value() < b.value(); }
};

}  // namespace gantry::layout
