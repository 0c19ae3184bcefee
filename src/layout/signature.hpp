// SPDX-License-Identifier: BSD-3-Clause
//
// The type signature of data (MPI 5.0 section 5.1): its basic items in their order, as a hash. That
// of a concatenation or of a repetition is worked out from those of its parts, so a large count
// costs no more than a small one.
#pragma once

#include "base/units.hpp"

#include <array>
#include <cstdint>

namespace gantry::layout {

// Plain data: it travels with messages.
struct Signature {
    // So many items of one type in a row. What the number of a type means is its giver's business.
    struct Run {
        std::uint64_t count : 48, type : 16;
    };
    static constexpr std::uint64_t kMostInRun = (std::uint64_t{1} << 48) - 1;

    std::uint64_t hash = 0;  // 0 with items: see matches_anything
    Bytes items = 0;
    std::array<Run, 2> begins{};  // with these runs, for people

    // Bytes without a type are among the items: nothing can be said against any other signature.
    bool matches_anything() const { return items > 0 && hash == 0; }
    // Whether `begins` says all of it.
    bool is_described() const { return begins[0].count + begins[1].count == items; }
    bool operator==(const Signature& other) const {
        return hash == other.hash && items == other.items;
    }
};

// One item. Different for different marks; `type` is how it is called (Signature::Run).
Signature signature_of_item(std::uint32_t mark, std::uint16_t type);
// One byte that may be anything.
Signature signature_of_byte(std::uint16_t type);

Signature joined(const Signature& first, const Signature& second);
Signature repeated(const Signature& part, Bytes count);

}  // namespace gantry::layout
