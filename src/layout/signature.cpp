// SPDX-License-Identifier: BSD-3-Clause
//
// The hash of the items a, b, c is the number a B^2 + b B + c modulo the prime 2^61 - 1. So the hash
// of two sequences in a row is that of the first, times a power of B, plus that of the second. B is a
// primitive root: no count of equal items that memory can hold comes round to the hash of another.
#include "layout/signature.hpp"

#include <algorithm>

namespace gantry::layout {
namespace {

constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;
constexpr std::uint64_t kBase = 0x1E37'79B9'7F4A'7C1A;

__extension__ using Product = unsigned __int128;

std::uint64_t times(std::uint64_t a, std::uint64_t b) {
    const Product product = Product{a} * b;
    const std::uint64_t sum =
        (static_cast<std::uint64_t>(product) & kPrime) + static_cast<std::uint64_t>(product >> 61);
    return sum >= kPrime ? sum - kPrime : sum;
}

std::uint64_t plus(std::uint64_t a, std::uint64_t b) {
    return a + b >= kPrime ? a + b - kPrime : a + b;
}

std::uint64_t power(std::uint64_t base, Bytes exponent) {
    std::uint64_t result = 1;
    for (; exponent > 0; exponent >>= 1, base = times(base, base))
        if (exponent & 1) result = times(result, base);
    return result;
}

// A signature with the power of B by which one in front of it is multiplied.
struct Part {
    Signature signature;
    std::uint64_t shift = 1;
};

// Puts a run behind those that are there. False: there is no place for it, nor for what follows.
bool describe_also(Signature& all, Signature::Run more) {
    std::size_t used = 0;
    while (used < all.begins.size() && all.begins[used].count != 0)
        ++used;
    if (used > 0 && all.begins[used - 1].type == more.type) {
        Signature::Run& last = all.begins[used - 1];
        last.count = std::min<std::uint64_t>(last.count + more.count, Signature::kMostInRun) &
                     Signature::kMostInRun;
        return true;
    }
    if (used == all.begins.size()) return false;
    all.begins[used] = more;
    return true;
}

Part joined(const Part& first, const Part& second) {
    const Signature &one = first.signature, &other = second.signature;
    Part all{one, times(first.shift, second.shift)};
    if (one.is_described())
        for (const Signature::Run& run : other.begins)
            if (run.count == 0 || !describe_also(all.signature, run)) break;
    all.signature.items += other.items;
    const bool unknown = one.matches_anything() || other.matches_anything();
    all.signature.hash = unknown ? 0 : plus(times(one.hash, second.shift), other.hash);
    return all;
}

Part part_of(const Signature& signature) {
    return {signature, power(kBase, signature.items)};
}

}  // namespace

Signature signature_of_item(std::uint32_t mark, std::uint16_t type) {
    // Any number but 0 below the prime, and far from its neighbours'.
    const std::uint64_t number = times(std::uint64_t{mark} + 1, kBase);
    return {number, 1, {{{1, type}, {}}}};
}

Signature signature_of_byte(std::uint16_t type) {
    return {0, 1, {{{1, type}, {}}}};
}

Signature joined(const Signature& first, const Signature& second) {
    return joined(part_of(first), part_of(second)).signature;
}

Signature repeated(const Signature& part, Bytes count) {
    Part result, doubled = part_of(part);
    for (; count > 0; count >>= 1, doubled = joined(doubled, doubled))
        if (count & 1) result = joined(result, doubled);
    return result.signature;
}

}  // namespace gantry::layout
