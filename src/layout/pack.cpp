// SPDX-License-Identifier: BSD-3-Clause
//
// Packing on the host: a form is gone through level by level, and what is innermost, runs at equal
// distances, in loops of a width that the compiler knows.
#include "layout/layout.hpp"

#include <algorithm>
#include <cstring>

namespace gantry::layout {
namespace {

// The caches keep a tile while it is gone through part by part.
constexpr Bytes kTile = 16 * kKiB;
// Runs in a row that a loop is worth.
constexpr Bytes kLongLoop = 16;

enum class Way : std::uint8_t { pack, unpack };

// From one run to the next, on both sides. (Two words go in registers: most rows are short.)
struct Strides {
    std::ptrdiff_t buffer;
    Bytes packed;
};

template <Way kWay>
void copy(std::byte* buffer, std::byte* packed, Bytes bytes) {
    if constexpr (kWay == Way::pack)
        std::memcpy(packed, buffer, bytes);
    else
        std::memcpy(buffer, packed, bytes);
}

// Runs of a width that the compiler knows are loads and stores.
template <Way kWay, Bytes kWidth>
void copy_runs(std::byte* buffer, std::byte* packed, Strides strides, Bytes count) {
    for (; count >= 4; count -= 4, buffer += 4 * strides.buffer, packed += 4 * strides.packed) {
        copy<kWay>(buffer, packed, kWidth);
        copy<kWay>(buffer + strides.buffer, packed + strides.packed, kWidth);
        copy<kWay>(buffer + 2 * strides.buffer, packed + 2 * strides.packed, kWidth);
        copy<kWay>(buffer + 3 * strides.buffer, packed + 3 * strides.packed, kWidth);
    }
    for (; count > 0; --count, buffer += strides.buffer, packed += strides.packed)
        copy<kWay>(buffer, packed, kWidth);
}

// Runs of any width from kHalf to two of them: their first bytes and their last ones, which meet.
template <Way kWay, Bytes kHalf>
void copy_halves(std::byte* buffer, std::byte* packed, Strides strides, Bytes width, Bytes count) {
    const Bytes last = width - kHalf;
    for (; count > 0; --count, buffer += strides.buffer, packed += strides.packed) {
        copy<kWay>(buffer, packed, kHalf);
        copy<kWay>(buffer + last, packed + last, kHalf);
    }
}

template <Way kWay>
void copy_runs_of_any_width(std::byte* buffer, std::byte* packed, Strides strides, Bytes width,
                            Bytes count) {
    if (width < 4) return copy_halves<kWay, 2>(buffer, packed, strides, width, count);
    if (width < 8) return copy_halves<kWay, 4>(buffer, packed, strides, width, count);
    if (width < 16) return copy_halves<kWay, 8>(buffer, packed, strides, width, count);
    if (width <= 32) return copy_halves<kWay, 16>(buffer, packed, strides, width, count);
    if (width <= 64) return copy_halves<kWay, 32>(buffer, packed, strides, width, count);
    for (; count > 0; --count, buffer += strides.buffer, packed += strides.packed)
        copy<kWay>(buffer, packed, width);
}

template <Way kWay>
void copy_runs(std::byte* buffer, std::byte* packed, Strides strides, Bytes width, Bytes count) {
    switch (width) {
        case 1: return copy_runs<kWay, 1>(buffer, packed, strides, count);
        case 2: return copy_runs<kWay, 2>(buffer, packed, strides, count);
        case 4: return copy_runs<kWay, 4>(buffer, packed, strides, count);
        case 8: return copy_runs<kWay, 8>(buffer, packed, strides, count);
        case 12: return copy_runs<kWay, 12>(buffer, packed, strides, count);
        case 16: return copy_runs<kWay, 16>(buffer, packed, strides, count);
        case 24: return copy_runs<kWay, 24>(buffer, packed, strides, count);
        case 32: return copy_runs<kWay, 32>(buffer, packed, strides, count);
        default: return copy_runs_of_any_width<kWay>(buffer, packed, strides, width, count);
    }
}

// What is repeated, and how: a part without its first place.
struct Repeated {
    const Form* inner;  // null: runs
    Bytes width;
    std::ptrdiff_t stride;
};

Repeated repeated(const Part& part) {
    return {part.inner.get(), part.width, part.stride};
}

template <Way kWay>
void all_of(const Form& form, std::byte* buffer, std::byte* packed);

// All of a flat form whose runs have that width.
template <Way kWay, Bytes kWidth>
void parts_of(const Form& form, std::byte* buffer, std::byte* packed) {
    for (const Part& part : form.parts)
        copy_runs<kWay, kWidth>(buffer + part.offset, packed + part.packed, {part.stride, kWidth},
                                part.count);
}

// All of a flat form.
template <Way kWay>
void parts_of(const Form& form, std::byte* buffer, std::byte* packed) {
    if (form.widest == form.narrowest) {
        switch (form.widest) {
            case 1: return parts_of<kWay, 1>(form, buffer, packed);
            case 2: return parts_of<kWay, 2>(form, buffer, packed);
            case 4: return parts_of<kWay, 4>(form, buffer, packed);
            case 8: return parts_of<kWay, 8>(form, buffer, packed);
            case 16: return parts_of<kWay, 16>(form, buffer, packed);
            default: break;
        }
    }
    for (const Part& part : form.parts)
        copy_runs<kWay>(buffer + part.offset, packed + part.packed, {part.stride, part.width},
                        part.width, part.count);
}

// One part of several elements: its runs are the inner loop, or the elements.
template <Way kWay>
void part_of_elements(const Part& part, std::byte* buffer, std::byte* packed, Strides elements,
                      Bytes count) {
    buffer += part.offset;
    packed += part.packed;
    const Strides runs{part.stride, part.width};
    const bool by_element = part.count >= kLongLoop || part.count >= count;
    const Strides outer = by_element ? elements : runs, inner = by_element ? runs : elements;
    const Bytes times = by_element ? count : part.count, each = by_element ? part.count : count;
    for (Bytes i = 0; i < times; ++i, buffer += outer.buffer, packed += outer.packed)
        copy_runs<kWay>(buffer, packed, inner, part.width, each);
}

// Whole elements of a flat form. Part by part, as far as the caches keep what is packed.
template <Way kWay>
void flat_elements(const Repeated& each, std::byte* buffer, std::byte* packed, Bytes count) {
    const std::vector<Part>& parts = each.inner->parts;
    const Bytes tile = parts.size() == 1 ? count : std::max<Bytes>(kTile / each.width, 1);
    for (Bytes done = 0; done < count; done += tile) {
        const Bytes here = std::min(tile, count - done);
        if (here == 1)
            parts_of<kWay>(*each.inner, buffer, packed);
        else
            for (const Part& part : parts)
                part_of_elements<kWay>(part, buffer, packed, {each.stride, each.width}, here);
        buffer += static_cast<std::ptrdiff_t>(here) * each.stride;
        packed += here * each.width;
    }
}

// Whole repetitions.
template <Way kWay>
void repetitions(const Repeated& each, std::byte* buffer, std::byte* packed, Bytes count) {
    if (each.inner == nullptr)
        return copy_runs<kWay>(buffer, packed, {each.stride, each.width}, each.width, count);
    if (each.inner->flat) return flat_elements<kWay>(each, buffer, packed, count);
    for (Bytes i = 0; i < count; ++i)
        all_of<kWay>(*each.inner, buffer + static_cast<std::ptrdiff_t>(i) * each.stride,
                     packed + i * each.width);
}

template <Way kWay>
void all_of(const Form& form, std::byte* buffer, std::byte* packed) {
    if (form.flat) return parts_of<kWay>(form, buffer, packed);
    for (const Part& part : form.parts)
        repetitions<kWay>(repeated(part), buffer + part.offset, packed + part.packed, part.count);
}

template <Way kWay>
void some_of(const Form& form, std::byte* buffer, Bytes first, Bytes bytes, std::byte* packed);

// Bytes inside one repetition.
template <Way kWay>
void inside_one(const Repeated& each, std::byte* buffer, Bytes first, Bytes bytes,
                std::byte* packed) {
    if (each.inner == nullptr)
        copy<kWay>(buffer + first, packed, bytes);
    else
        some_of<kWay>(*each.inner, buffer, first, bytes, packed);
}

// Bytes [first, first + bytes) of repetitions: the rest of one, whole ones, the begin of another.
template <Way kWay>
void some_repetitions(const Repeated& each, std::byte* buffer, Bytes first, Bytes bytes,
                      std::byte* packed) {
    buffer += static_cast<std::ptrdiff_t>(first / each.width) * each.stride;
    first %= each.width;
    if (first > 0) {
        const Bytes rest = std::min(each.width - first, bytes);
        inside_one<kWay>(each, buffer, first, rest, packed);
        buffer += each.stride;
        packed += rest;
        bytes -= rest;
    }
    const Bytes whole = bytes / each.width;
    if (whole > 0) repetitions<kWay>(each, buffer, packed, whole);
    const Bytes rest = bytes % each.width;
    if (rest > 0)
        inside_one<kWay>(each, buffer + static_cast<std::ptrdiff_t>(whole) * each.stride, 0, rest,
                         packed + whole * each.width);
}

template <Way kWay>
void some_of(const Form& form, std::byte* buffer, Bytes first, Bytes bytes, std::byte* packed) {
    auto part = std::ranges::upper_bound(form.parts, first, {}, &Part::packed) - 1;
    while (bytes > 0) {
        const Bytes at = first - part->packed;
        const Bytes here = std::min(bytes, part->bytes() - at);
        some_repetitions<kWay>(repeated(*part), buffer + part->offset, at, here, packed);
        first += here;
        bytes -= here;
        packed += here;
        ++part;
    }
}

template <Way kWay>
void move(const Layout& layout, std::byte* buffer, Bytes first, Bytes bytes, std::byte* packed) {
    if (layout.size == 0 || bytes == 0) return;
    if (layout.contiguous())
        copy<kWay>(buffer + first, packed, bytes);
    else if (first == 0 && bytes == layout.size)  // one element, mostly a small one
        all_of<kWay>(*layout.form, buffer, packed);
    else
        some_repetitions<kWay>({layout.form.get(), layout.size, layout.extent}, buffer, first,
                               bytes, packed);
}

}  // namespace

void pack(const Layout& layout, const void* buffer, Bytes first, Bytes bytes, void* packed) {
    move<Way::pack>(layout, static_cast<std::byte*>(const_cast<void*>(buffer)), first, bytes,
                    static_cast<std::byte*>(packed));
}

void unpack(const Layout& layout, void* buffer, Bytes first, Bytes bytes, const void* packed) {
    move<Way::unpack>(layout, static_cast<std::byte*>(buffer), first, bytes,
                      static_cast<std::byte*>(const_cast<void*>(packed)));
}

}  // namespace gantry::layout
