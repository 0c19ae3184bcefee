// SPDX-License-Identifier: BSD-3-Clause
#include "element.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace gantry::bench {
namespace {

constexpr std::string_view kElements[] = {"char", "int", "long", "float", "double"};
constexpr std::string_view kCombinations[] = {"sum", "max", "min", "band", "bor", "bxor"};

template <class Value>
void store_as(std::byte* at, std::int64_t number) {
    const auto value = static_cast<Value>(number);
    std::memcpy(at, &value, sizeof value);
}
template <class Value>
double load_as(const std::byte* at) {
    Value value;
    std::memcpy(&value, at, sizeof value);
    return static_cast<double>(value);
}

template <std::size_t Count>
std::ptrdiff_t place_of(std::string_view name, const std::string_view (&names)[Count]) {
    return std::distance(std::begin(names), std::ranges::find(names, name));
}

}  // namespace

Element element_named(std::string_view name) {
    return static_cast<Element>(place_of(name, kElements));
}
Combination combination_named(std::string_view name) {
    return static_cast<Combination>(place_of(name, kCombinations));
}

Bytes size_of(Element element) {
    constexpr Bytes sizes[] = {1, 4, 8, 4, 8};
    return sizes[static_cast<std::size_t>(element)];
}

MPI_Datatype type_of(Element element) {
    switch (element) {
        case Element::int8: return MPI_SIGNED_CHAR;
        case Element::int32: return MPI_INT;
        case Element::int64: return MPI_INT64_T;
        case Element::float32: return MPI_FLOAT;
        case Element::float64: break;
    }
    return MPI_DOUBLE;
}

MPI_Op op_of(Combination op) {
    switch (op) {
        case Combination::sum: return MPI_SUM;
        case Combination::maximum: return MPI_MAX;
        case Combination::minimum: return MPI_MIN;
        case Combination::bits_and: return MPI_BAND;
        case Combination::bits_or: return MPI_BOR;
        case Combination::bits_xor: break;
    }
    return MPI_BXOR;
}

// A long is compared as a double, which holds so many whole numbers.
std::int64_t limit_of(Element element, int added) {
    constexpr std::int64_t exact[] = {127, INT32_MAX, std::int64_t{1} << 53, 1 << 24,
                                      std::int64_t{1} << 53};
    const std::int64_t most = exact[static_cast<std::size_t>(element)] / std::max(added, 1);
    return most < 2 ? 0 : most;
}

void store(Element element, std::byte* at, std::int64_t number) {
    switch (element) {
        case Element::int8: return store_as<std::int8_t>(at, number);
        case Element::int32: return store_as<std::int32_t>(at, number);
        case Element::int64: return store_as<std::int64_t>(at, number);
        case Element::float32: return store_as<float>(at, number);
        case Element::float64: return store_as<double>(at, number);
    }
}

double load(Element element, const std::byte* at) {
    switch (element) {
        case Element::int8: return load_as<std::int8_t>(at);
        case Element::int32: return load_as<std::int32_t>(at);
        case Element::int64: return load_as<std::int64_t>(at);
        case Element::float32: return load_as<float>(at);
        case Element::float64: break;
    }
    return load_as<double>(at);
}

std::int64_t combined(Combination op, std::int64_t one, std::int64_t other) {
    switch (op) {
        case Combination::sum: return one + other;
        case Combination::maximum: return std::max(one, other);
        case Combination::minimum: return std::min(one, other);
        case Combination::bits_and: return one & other;
        case Combination::bits_or: return one | other;
        case Combination::bits_xor: break;
    }
    return one ^ other;
}

}  // namespace gantry::bench
