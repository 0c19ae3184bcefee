// SPDX-License-Identifier: BSD-3-Clause
#include "layout/layout.hpp"

#include <utility>

namespace gantry::layout {

Layout::Layout(FormPtr of_element, std::ptrdiff_t distance)
    : extent(distance), form(std::move(of_element)) {
    if (form == nullptr) return;
    size = form->size;
    one_run = form->one_run();
    const Form* inside = form.get();
    first = inside->parts[0].offset;
    while (inside->parts[0].inner != nullptr) {
        inside = inside->parts[0].inner.get();
        first += inside->parts[0].offset;
    }
}

Span span_of(const Layout& layout, std::uint64_t count) {
    if (count == 0 || layout.size == 0) return {};
    Span span = layout.form->span;
    const std::ptrdiff_t last = static_cast<std::ptrdiff_t>(count - 1) * layout.extent;
    (last < 0 ? span.low : span.high) += last;
    return span;
}

Layout contiguous_layout(Bytes size) {
    const Block all{0, size};
    return listed_layout(static_cast<std::ptrdiff_t>(size), {&all, 1});
}

Layout listed_layout(std::ptrdiff_t extent, std::span<const Block> blocks) {
    FormBuilder builder;
    for (const Block& block : blocks)
        if (block.bytes > 0) builder.add_run(block.offset, block.bytes);
    return Layout(builder.finish(), extent);
}

}  // namespace gantry::layout
