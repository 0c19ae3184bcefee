// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/check/signature.hpp"

#include "mpi/datatype/datatype.hpp"

namespace gantry::mpi {
namespace {

// A polynomial of the items, modulo 2^64.
constexpr std::uint64_t kBase = 0x9E37'79B9'7F4A'7C15;

std::uint64_t power(std::uint64_t base, Bytes exponent) {
    std::uint64_t result = 1;
    for (; exponent > 0; exponent >>= 1, base *= base)
        if (exponent & 1) result *= base;
    return result;
}

Signature joined(const Signature& first, const Signature& second) {
    return {first.hash * power(kBase, second.items) + second.hash, first.items + second.items};
}

Signature repeated(Signature part, Bytes count) {
    Signature result;
    for (; count > 0; count >>= 1, part = joined(part, part))
        if (count & 1) result = joined(result, part);
    return result;
}

// Different for different basic types; never 0.
std::uint64_t mark_of(const Datatype& predefined) {
    const std::uint64_t number =
        predefined.element != layout::Element::none
            ? static_cast<std::uint64_t>(predefined.element)
            : reinterpret_cast<std::uintptr_t>(predefined.handle) + layout::kElements;
    return (number + 1) * 0xBF58'476D'1CE4'E5B9;
}

}  // namespace

Signature signature_of(const Datatype& datatype, Bytes count) {
    if (datatype.predefined) return repeated({mark_of(datatype), 1}, count);
    Signature one;
    for (const Piece& piece : datatype.pieces)
        one = joined(one, signature_of(*piece.type, piece.elements()));
    return repeated(one, count);
}

}  // namespace gantry::mpi
