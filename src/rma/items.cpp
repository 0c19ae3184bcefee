// SPDX-License-Identifier: BSD-3-Clause
#include "rma/items.hpp"

#include "transfer/mover.hpp"

#include <cstring>

namespace gantry::rma {
namespace {

using layout::Element;

template <class Value, class Index>
struct Pair {
    Value value;
    Index index;
};

template <class Value, class Index>
Items pair() {
    return {Element::none, sizeof(Value) + sizeof(Index), sizeof(Pair<Value, Index>)};
}

Items plain(std::uint32_t bytes) {
    return {Element::none, bytes, bytes};
}

Items sized(Element element) {
    switch (element) {
        case Element::int8:
        case Element::uint8:
        case Element::boolean:
        case Element::logical8:
        case Element::byte: return plain(1);
        case Element::int16:
        case Element::uint16:
        case Element::float16:
        case Element::logical16: return plain(2);
        case Element::int32:
        case Element::uint32:
        case Element::float32:
        case Element::logical32: return plain(4);
        case Element::int64:
        case Element::uint64:
        case Element::float64:
        case Element::complex64:
        case Element::logical64:
        case Element::address:
        case Element::count:
        case Element::offset: return plain(8);
        case Element::int128:
        case Element::long_double:
        case Element::float128:
        case Element::complex128:
        case Element::logical128: return plain(16);
        case Element::complex_long_double:
        case Element::complex256: return plain(32);
        case Element::float_int: return pair<float, int>();
        case Element::double_int: return pair<double, int>();
        case Element::long_int: return pair<long, int>();
        case Element::int_int:
        case Element::integer_integer: return pair<int, int>();
        case Element::short_int: return pair<short, int>();
        case Element::long_double_int: return pair<long double, int>();
        case Element::real_real: return pair<float, float>();
        case Element::double_double: return pair<double, double>();
        case Element::none: break;
    }
    return {};
}

// One padded item in memory: its value, and its index at the end of what precedes the padding.
layout::Layout layout_of(const Items& items) {
    const bool is_short = items.element == Element::short_int;
    const Bytes value = is_short ? sizeof(short) : items.size - sizeof(int);
    const layout::Block blocks[] = {
        {0, value},
        {is_short ? static_cast<std::ptrdiff_t>(sizeof(int)) : static_cast<std::ptrdiff_t>(value),
         sizeof(int)}};
    return layout::listed_layout(static_cast<std::ptrdiff_t>(items.extent), blocks);
}

Status combine_padded(layout::Reduction reduce, const Items& items, const std::byte* operand,
                      std::byte* target, Bytes bytes) {
    const Bytes count = bytes / items.size;
    Result<std::unique_ptr<std::byte[]>> spread =
        transfer::host_memory(2 * count * items.extent, "the items of an accumulate");
    GANTRY_TRY(spread.status());
    std::byte* const first = spread->get();
    std::byte* const second = first + count * items.extent;
    const layout::Layout item = layout_of(items);
    layout::unpack(item, first, 0, bytes, operand);
    layout::unpack(item, second, 0, bytes, target);
    reduce(first, second, count);
    layout::pack(item, second, 0, bytes, target);
    return success();
}

}  // namespace

Items items_of(Element element) {
    Items items = sized(element);
    items.element = element;
    return items;
}

Status combine_packed(layout::Operation operation, const Items& items, const std::byte* operand,
                      std::byte* target, Bytes bytes) {
    if (operation == layout::Operation::no_op || bytes == 0) return success();
    if (operation == layout::Operation::replace) {
        std::memcpy(target, operand, bytes);
        return success();
    }
    const layout::Reduction reduce = layout::reduction(operation, items.element);
    GANTRY_ASSERT(reduce != nullptr);
    if (items.padded()) return combine_padded(reduce, items, operand, target, bytes);
    reduce(operand, target, bytes / items.size);
    return success();
}

}  // namespace gantry::rma
